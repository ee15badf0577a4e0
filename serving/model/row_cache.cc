#include "serving/model/row_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <thread>

namespace cairn::serving {
namespace {

constexpr unsigned kWays = 16, kWordWays = 8;
constexpr std::size_t kMissedASet = 8;  // misses that are remembered, for each set
constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
// So many look-ups are on their way from memory: first their sets, and after as many others the
// row that is likely to be theirs.
constexpr std::size_t kProbesAhead = 12, kHashes = 32;
static_assert(kHashes > 2 * kProbesAhead && std::has_single_bit(kHashes));

// The finalizer of MurmurHash3 (Appleby, 2011), which mixes all bits into all.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ value >> 33) * 0xff51afd7ed558ccd;
  value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53;
  return value ^ value >> 33;
}
std::uint64_t hash_of(std::uint32_t table, std::int64_t row) {
  return mixed(static_cast<std::uint64_t>(row) ^ mixed(table));
}
// 1 to 255; 0 is that of a free place. Sets are chosen by the high bits.
std::uint8_t tag_of(std::uint64_t hash) {
  return static_cast<std::uint8_t>(1 + (hash & 0xff) % 255);
}

// The high bit of each byte of `word` that is `tag`.
std::uint64_t equal_bytes(std::uint64_t word, std::uint8_t tag) {
  const std::uint64_t differ = word ^ kOnes * tag;
  return ~(((differ & ~kHighs) + ~kHighs) | differ | ~kHighs);
}

}  // namespace

// Readers look at tags without the lock to know what to prefetch, hence the atomics.
struct alignas(64) RowCache::Set {
  std::atomic<std::uint8_t> locked;
  std::uint8_t hand;    // the place to be looked at next for one to replace
  std::uint32_t reads;  // two bits for each place: how often the hand is to spare it
  std::array<std::atomic<std::uint64_t>, kWays / kWordWays> tags;

  void lock() {
    for (unsigned tries = 0; locked.exchange(1, std::memory_order_acquire) != 0; ++tries)
      if (tries >= 64) std::this_thread::yield();  // its holder may wait for a processor
  }
  void unlock() { locked.store(0, std::memory_order_release); }

  // A bit for each place whose tag this is.
  unsigned with_tag(std::uint8_t tag) const {
    unsigned places = 0;
    for (unsigned word = 0; word < tags.size(); ++word)
      for (std::uint64_t left = equal_bytes(tags[word].load(std::memory_order_relaxed), tag);
           left != 0; left &= left - 1)
        places |= 1u << (word * kWordWays + static_cast<unsigned>(std::countr_zero(left)) / 8);
    return places;
  }
  void set_tag(unsigned way, std::uint8_t tag) {
    auto& word = tags[way / kWordWays];
    const unsigned shift = way % kWordWays * 8;
    const std::uint64_t others =
        word.load(std::memory_order_relaxed) & ~(std::uint64_t{0xff} << shift);
    word.store(others | static_cast<std::uint64_t>(tag) << shift, std::memory_order_relaxed);
  }
  void was_read(unsigned way) {
    if ((reads >> 2 * way & 3) < 3) reads += 1u << 2 * way;
  }
  // The first place from the hand on that is not to be spared any more.
  unsigned place_to_replace() {
    for (; (reads >> 2 * hand & 3) != 0; hand = (hand + 1) % kWays) reads -= 1u << 2 * hand;
    const unsigned way = hand;
    hand = (hand + 1) % kWays;
    return way;
  }
};

// The row follows.
struct RowCache::Slot {
  std::int64_t row;
  std::uint32_t table;
  std::uint32_t kind;
};

RowCache::RowCache(std::size_t row_bytes)
    : row_bytes_(row_bytes), slot_bytes_((sizeof(Slot) + row_bytes + 7) / 8 * 8) {}

RowCache::Set& RowCache::set_of(std::uint64_t hash) const {
  const auto at = static_cast<std::uint64_t>(static_cast<unsigned __int128>(hash) * count_ >> 64);
  return reinterpret_cast<Set*>(sets_.data())[at];
}

std::byte* RowCache::slot(const Set& set, unsigned way) const {
  const auto at =
      static_cast<std::size_t>(&set - reinterpret_cast<const Set*>(sets_.data())) * kWays + way;
  return slots_.data() + at * slot_bytes_;
}

void RowCache::prefetch_slot(std::uint64_t hash) const {
  const Set& set = set_of(hash);
  const unsigned places = set.with_tag(tag_of(hash));
  if (places == 0) return;
  const std::byte* const at = slot(set, static_cast<unsigned>(std::countr_zero(places)));
  for (std::size_t line = 0; line < std::min<std::size_t>(slot_bytes_, 512); line += 64)
    __builtin_prefetch(at + line);
}

bool RowCache::take(std::uint32_t table, std::int64_t row, std::uint64_t hash, std::byte* out,
                    std::size_t& initial) const {
  Set& set = set_of(hash);
  const std::lock_guard hold(set);
  for (unsigned places = set.with_tag(tag_of(hash)); places != 0; places &= places - 1) {
    const auto way = static_cast<unsigned>(std::countr_zero(places));
    const std::byte* const at = slot(set, way);
    const Slot& head = *reinterpret_cast<const Slot*>(at);
    if (head.row != row || head.table != table) continue;
    set.was_read(way);
    std::memcpy(out, at + sizeof(Slot), row_bytes_);
    initial += head.kind;
    return true;
  }
  return false;
}

std::size_t RowCache::read(std::uint32_t table, std::span<const std::int64_t> rows, std::byte* out,
                           std::vector<std::int64_t>& missed) const {
  const std::shared_lock hold(resizing_);
  std::size_t initial = 0;
  std::array<std::uint64_t, kHashes> hashes;
  for (std::size_t i = 0; i < rows.size() + 2 * kProbesAhead; ++i) {
    if (count_ > 0 && i < rows.size()) {
      const std::uint64_t hash = hashes[i % kHashes] = hash_of(table, rows[i]);
      __builtin_prefetch(&set_of(hash));
    }
    if (count_ > 0 && i >= kProbesAhead && i - kProbesAhead < rows.size())
      prefetch_slot(hashes[(i - kProbesAhead) % kHashes]);
    if (i < 2 * kProbesAhead) continue;
    const std::size_t at = i - 2 * kProbesAhead;
    if (count_ == 0 || !take(table, rows[at], hashes[at % kHashes], out + at * row_bytes_, initial))
      missed.push_back(static_cast<std::int64_t>(at));
  }
  return initial;
}

void RowCache::put(std::uint32_t table, std::int64_t row, Kind kind, const std::byte* values) {
  const std::shared_lock hold(resizing_);
  if (count_ == 0) return;
  const std::uint64_t hash = hash_of(table, row);
  Set& set = set_of(hash);
  const std::lock_guard one(set);
  // Another thread may have missed the same row.
  for (unsigned places = set.with_tag(tag_of(hash)); places != 0; places &= places - 1) {
    const auto& head =
        *reinterpret_cast<const Slot*>(slot(set, static_cast<unsigned>(std::countr_zero(places))));
    if (head.row == row && head.table == table) return;
  }
  const unsigned free = set.with_tag(0);
  if (free == 0 && !was_missed_before(hash)) return;
  const unsigned way =
      free != 0 ? static_cast<unsigned>(std::countr_zero(free)) : set.place_to_replace();
  set.set_tag(way, tag_of(hash));
  std::byte* const at = slot(set, way);
  *reinterpret_cast<Slot*>(at) = {row, table, kind == Kind::kInitial ? 1u : 0u};
  std::memcpy(at + sizeof(Slot), values, row_bytes_);
}

std::size_t RowCache::set_bytes() const { return sizeof(Set) + kWays * slot_bytes_ + kMissedASet; }

// Threads that meet here lose a note at worst.
bool RowCache::was_missed_before(std::uint64_t hash) {
  const std::uint64_t other = mixed(hash);
  const auto at = static_cast<std::uint64_t>(static_cast<unsigned __int128>(other) * count_ >> 64) *
                      kMissedASet +
                  other % kMissedASet;
  auto& note = *reinterpret_cast<std::atomic<std::uint8_t>*>(missed_.data() + at);
  const std::uint8_t tag = tag_of(other / kMissedASet);
  if (note.load(std::memory_order_relaxed) == tag) return true;
  note.store(tag, std::memory_order_relaxed);
  return false;
}

// The old memory goes first, so that there is never more than the larger of the two.
void RowCache::resize(std::size_t bytes) {
  const std::lock_guard hold(resizing_);
  count_ = 0;
  sets_ = {};
  slots_ = {};
  missed_ = {};
  const std::uint64_t count = bytes / set_bytes();
  if (count == 0) return;
  Arena sets(count * sizeof(Set)), slots(count * kWays * slot_bytes_), missed(count * kMissedASet);
  sets_ = std::move(sets);
  slots_ = std::move(slots);
  missed_ = std::move(missed);
  count_ = count;
}

std::size_t RowCache::bytes() const {
  const std::shared_lock hold(resizing_);
  return count_ * set_bytes();
}

}  // namespace cairn::serving
