#include "core/rows/frequency_sketch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "core/base/random.h"

namespace cairn {
namespace {

constexpr std::size_t kRowsOfABlock = 8;
constexpr std::uint64_t kCounterMost = 15;
constexpr std::uint64_t kHalves = 0x7777777777777777ull;  // what a counter keeps when it is halved

std::uint64_t door_bits(std::uint64_t hash) {
  return (std::uint64_t{1} << (hash >> 58)) | (std::uint64_t{1} << ((hash >> 52) & 63));
}

// The shift within its word, and the word, of the i-th counter: 8 bits of the hash each.
struct CounterAt {
  std::size_t word;
  unsigned shift;
};
CounterAt counter_at(std::uint64_t bits, std::size_t i) {
  const std::uint64_t part = (bits >> (16 * i)) & 0xFFFF;
  return {static_cast<std::size_t>((part >> 4) % 7), static_cast<unsigned>((part & 15) * 4)};
}

}  // namespace

FrequencySketch::FrequencySketch(std::size_t rows, std::size_t uses_of_a_row)
    : blocks_(std::bit_ceil(std::max<std::size_t>(rows / kRowsOfABlock, 1))),
      period_(std::max<std::size_t>(rows, kRowsOfABlock) * uses_of_a_row) {}

void FrequencySketch::add(std::uint64_t hash) {
  Block& block = blocks_[hash & (blocks_.size() - 1)];
  const std::uint64_t door = door_bits(hash);
  if ((block.door & door) != door) {
    block.door |= door;
  } else {
    // Only the smallest counters rise, which keeps what other ids have added to the rest out.
    const std::uint32_t least = count(hash) - 1;
    const std::uint64_t bits = mix_bits(hash);
    for (std::size_t i = 0; i < kCounters; ++i) {
      const CounterAt at = counter_at(bits, i);
      const std::uint64_t value = (block.counters[at.word] >> at.shift) & kCounterMost;
      if (value == least && value < kCounterMost)
        block.counters[at.word] += std::uint64_t{1} << at.shift;
    }
  }
  if (++uses_ >= period_) age();
}

std::uint32_t FrequencySketch::count(std::uint64_t hash) const {
  const Block& block = blocks_[hash & (blocks_.size() - 1)];
  const std::uint64_t bits = mix_bits(hash);
  std::uint64_t least = kCounterMost;
  for (std::size_t i = 0; i < kCounters; ++i) {
    const CounterAt at = counter_at(bits, i);
    least = std::min(least, (block.counters[at.word] >> at.shift) & kCounterMost);
  }
  const std::uint64_t door = door_bits(hash);
  return static_cast<std::uint32_t>(least) + ((block.door & door) == door ? 1 : 0);
}

// Blocks that nothing was counted in are left out: the number of blocks and of uses, and then each
// block behind its own number.
std::string FrequencySketch::saved() const {
  std::string out;
  const auto put = [&out](std::uint64_t number) {
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(blocks_.size());
  put(uses_);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (block.door == 0 && block.counters == Block{}.counters) continue;
    put(i);
    out.append(reinterpret_cast<const char*>(&block), sizeof block);
  }
  return out;
}

bool FrequencySketch::add_saved(std::string_view saved) {
  constexpr std::size_t kNumber = sizeof(std::uint64_t), kEntry = kNumber + sizeof(Block);
  const auto number_at = [&saved](std::size_t at) {
    std::uint64_t number;
    std::memcpy(&number, saved.data() + at, sizeof number);
    return number;
  };
  const auto is_sound = [&] {
    if (saved.size() < 2 * kNumber || (saved.size() - 2 * kNumber) % kEntry != 0) return false;
    for (std::size_t at = 2 * kNumber; at < saved.size(); at += kEntry)
      if (number_at(at) >= number_at(0)) return false;
    return true;
  };
  if (!is_sound())
    throw DataLossError(
        str("the counts of rows that were seen, ", saved.size(), " bytes, are damaged"));
  if (number_at(0) != blocks_.size()) return false;
  uses_ += static_cast<std::size_t>(std::min<std::uint64_t>(number_at(kNumber), period_));
  uses_ = std::min(uses_, period_ - 1);
  for (std::size_t at = 2 * kNumber; at < saved.size(); at += kEntry) {
    Block other;
    std::memcpy(&other, saved.data() + at + kNumber, sizeof other);
    add(blocks_[number_at(at)], other);
  }
  return true;
}

void FrequencySketch::add(Block& to, const Block& other) {
  to.door |= other.door;
  for (std::size_t word = 0; word < kCounterWords; ++word) {
    const std::uint64_t a = to.counters[word], b = other.counters[word];
    std::uint64_t sum = 0;
    for (unsigned shift = 0; shift < 64; shift += 4)
      sum |= std::min(kCounterMost, (a >> shift & kCounterMost) + (b >> shift & kCounterMost))
             << shift;
    to.counters[word] = sum;
  }
}

void FrequencySketch::age() {
  for (Block& block : blocks_) {
    for (std::uint64_t& word : block.counters) word = (word >> 1) & kHalves;
    block.door = 0;
  }
  uses_ /= 2;
}

}  // namespace cairn
