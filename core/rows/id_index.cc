#include "core/rows/id_index.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/error.h"
#include "core/base/random.h"

namespace cairn {
namespace {

constexpr std::uint64_t kFirstCapacity = 64;
// 2 would do: growth by half leaves room for half as many ids as have to move
constexpr std::int64_t kMovedAnId = 4;
// look-ups whose entry is under way, and as many whose id is
constexpr std::size_t kAhead = 32;

std::uint64_t hash_of(std::int64_t id) { return mix_bits(static_cast<std::uint64_t>(id)); }

}  // namespace

// ---- entries ----

// At most four fifths of the entries are used, which bounds the length of the runs that linear
// probing has to walk. Place 0 is stored as 1, because an entry of 0 is a free one.
IdIndex::Entries::Entries(std::uint64_t wanted)
    : memory(static_cast<std::size_t>(wanted) * sizeof(std::uint32_t)),
      capacity(wanted),
      places_max(
          static_cast<std::int64_t>(std::min(wanted / 5 * 4, static_cast<std::uint64_t>(kIdsMax)))),
      place_bits(static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(places_max)))) {}

// of its high bits
inline std::uint64_t IdIndex::Entries::home(std::uint64_t hash) const {
  return scaled_below(hash, capacity);
}

// The tag comes from the hash's low bits, and the home from its high ones: ids that share a home
// still differ in their tags.
inline std::uint64_t IdIndex::Entries::tag(std::uint64_t hash) const {
  return hash & ((std::uint64_t{1} << (32 - place_bits)) - 1);
}

inline std::int64_t IdIndex::Entries::place(std::uint32_t entry) const {
  return static_cast<std::int64_t>(entry & ((std::uint64_t{1} << place_bits) - 1)) - 1;
}

template <typename Accept>
inline std::int64_t IdIndex::Entries::find(std::uint64_t hash, Accept accept) const {
  if (capacity == 0) return kAbsent;
  const std::uint64_t wanted = tag(hash);
  for (std::uint64_t at = home(hash);; at = next(at)) {
    const std::uint32_t entry = data()[at];
    if (entry == 0) return kAbsent;
    if (std::uint64_t{entry} >> place_bits == wanted && accept(place(entry))) return place(entry);
  }
}

inline void IdIndex::Entries::prefetch(std::uint64_t hash) const {
  if (capacity > 0) __builtin_prefetch(data() + home(hash));
}

void IdIndex::Entries::add(std::uint64_t hash, std::int64_t place) {
  std::uint64_t at = home(hash);
  while (data()[at] != 0) at = next(at);
  data()[at] =
      static_cast<std::uint32_t>(tag(hash) << place_bits | static_cast<std::uint64_t>(place + 1));
}

// Those that follow come one nearer to their homes, up to the next free entry, as if it had never
// been there (Knuth's Algorithm R).
template <typename HashOf>
void IdIndex::Entries::erase(std::uint64_t hash, std::int64_t erased, HashOf hash_of_place) {
  std::uint64_t hole = home(hash);
  while (place(data()[hole]) != erased) hole = next(hole);
  for (std::uint64_t at = next(hole); data()[at] != 0; at = next(at)) {
    const std::uint64_t from = home(hash_of_place(place(data()[at])));
    // Whether its home lies behind the hole, seen from there.
    const bool stays = hole < at ? hole < from && from <= at : hole < from || from <= at;
    if (stays) continue;
    data()[hole] = data()[at];
    hole = at;
  }
  data()[hole] = 0;
}

// ---- ids ----

std::size_t IdIndex::bytes() const {
  return static_cast<std::size_t>(size_) * sizeof(std::int64_t) +
         free_.capacity() * sizeof(std::uint32_t) +
         (entries_.capacity + before_.capacity) * sizeof(std::uint32_t);
}

std::int64_t IdIndex::find(std::int64_t id, std::uint64_t hash) const {
  const auto is_it = [&](std::int64_t place) { return *id_at(place) == id; };
  const std::int64_t place = entries_.find(hash, is_it);
  return place == kAbsent && growing() ? before_.find(hash, is_it) : place;
}

void IdIndex::make_room() {
  if (size_ < entries_.places_max) return;
  if (size_ >= kIdsMax)
    throw ResourceExhaustedError(
        str("a hashed table holds ", size_, " rows, the most it can; use more ps"));
  grow_to(std::max(kFirstCapacity, entries_.capacity + entries_.capacity / 2));
}

void IdIndex::grow_to(std::uint64_t capacity) {
  Entries larger(capacity);
  before_ = std::move(entries_);
  entries_ = std::move(larger);
  moved_ = 0;
  to_move_ = size_;
}

// The ids that are there move at once: there are none where a table is about to be filled.
void IdIndex::reserve(std::int64_t ids) {
  const std::int64_t wanted = std::min(ids, kIdsMax);
  if (wanted <= entries_.places_max) return;
  while (growing()) move_some();
  grow_to(std::max(kFirstCapacity, static_cast<std::uint64_t>(wanted) / 4 * 5 + 5));
  while (growing()) move_some();
  before_ = Entries();
}

// Four old ids move with each new one, so the growth is over long before the larger table is full.
// The next ones are asked for already, as their homes lie anywhere.
void IdIndex::move_some() {
  for (std::int64_t n = 0; n < kMovedAnId && moved_ < to_move_; ++n, ++moved_)
    if (*id_at(moved_) != kFree) entries_.add(hash_of(*id_at(moved_)), moved_);
  for (std::int64_t place = moved_; place < std::min(moved_ + kMovedAnId, to_move_); ++place)
    entries_.prefetch(hash_of(*id_at(place)));
  if (moved_ == to_move_ && before_.capacity > 0) before_ = Entries();
}

std::int64_t IdIndex::add(std::int64_t id, std::uint64_t hash) {
  if (used_ < size_) {
    const std::int64_t place = take_free();
    *id_to_change(place) = id;
    entries_of(place).add(hash, place);
    ++used_;
    return place;
  }
  make_room();
  const std::size_t needed = static_cast<std::size_t>(size_ + 1) * sizeof(std::int64_t);
  if (needed > ids_.bytes()) ids_.grow(std::max(needed, ids_.bytes() + ids_.bytes() / 2));
  *id_to_change(size_) = id;
  entries_of(size_).add(hash, size_);
  ++size_;
  ++used_;
  move_some();
  return size_ - 1;
}

std::int64_t IdIndex::take_free() {
  for (;;) {
    const std::int64_t place = free_.back();
    free_.pop_back();
    if (place < size_ && *id_at(place) == kFree) return place;
  }
}

// Entries of places that have moved to the larger table stay in the smaller one, where they are of
// no use. They may be of another id by now, and stand anywhere: no look-up ends at them.
void IdIndex::erase(std::int64_t place) {
  free_.push_back(static_cast<std::uint32_t>(place));
  take_out(place);
  --used_;
}

void IdIndex::take_out(std::int64_t place) {
  const std::uint64_t hash = hash_of(*id_at(place));
  entries_of(place).erase(hash, place,
                          [this](std::int64_t other) { return hash_of(*id_at(other)); });
  *id_to_change(place) = kFree;
}

std::int64_t IdIndex::drop_last() {
  CAIRN_CHECK(used_ < size_, "no place is free");
  const std::int64_t last = size_ - 1, id = *id_at(last);
  if (id == kFree) {
    --size_;
    return kAbsent;
  }
  take_out(last);
  --size_;
  const std::int64_t place = take_free();
  *id_to_change(place) = id;
  entries_of(place).add(hash_of(id), place);
  return place;
}

// Three stages, each kAhead look-ups behind the one before it: ask for the entry, read the entry
// and ask for the id that it names, then look at the id. A look-up misses the cache twice, and this
// way up to 2 * kAhead misses are under way at once.
template <typename Take>
void IdIndex::ahead(std::span<const std::int64_t> ids, Take take) const {
  const auto any = [](std::int64_t) { return true; };
  struct LookUp {
    std::uint64_t hash;
    std::int64_t candidate;
  };
  std::array<LookUp, 2 * kAhead> under_way;  // a ring
  const auto at = [&](std::size_t i) -> LookUp& { return under_way[i % under_way.size()]; };
  for (std::size_t i = 0; i < ids.size() + 2 * kAhead; ++i) {
    if (i >= 2 * kAhead) {
      const std::size_t done = i - 2 * kAhead;
      take(done, ids[done], at(done).hash, at(done).candidate);
    }
    if (const std::size_t next = i - kAhead; i >= kAhead && next < ids.size()) {
      LookUp& one = at(next);
      one.candidate = entries_.find(one.hash, any);
      if (one.candidate == kAbsent && growing()) one.candidate = before_.find(one.hash, any);
      if (one.candidate != kAbsent) __builtin_prefetch(id_at(one.candidate));
    }
    if (i < ids.size()) {
      at(i).hash = hash_of(ids[i]);
      entries_.prefetch(at(i).hash);
      if (growing()) before_.prefetch(at(i).hash);
    }
  }
}

void IdIndex::find(std::span<const std::int64_t> ids, std::int64_t* places) const {
  ahead(ids, [&](std::size_t i, std::int64_t id, std::uint64_t hash, std::int64_t candidate) {
    const bool sure = candidate == kAbsent || *id_at(candidate) == id;
    places[i] = sure ? candidate : find(id, hash);
  });
}

void IdIndex::find_or_add(std::span<const std::int64_t> ids, std::int64_t* places) {
  ahead(ids, [&](std::size_t i, std::int64_t id, std::uint64_t hash, std::int64_t candidate) {
    places[i] = candidate;
    if (candidate != kAbsent && *id_at(candidate) == id) return;
    places[i] = find(id, hash);  // it may have come just now
    if (places[i] == kAbsent) places[i] = add(id, hash);
  });
}

}  // namespace cairn
