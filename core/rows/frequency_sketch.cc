#include "core/rows/frequency_sketch.h"

#include <algorithm>
#include <bit>

#include "core/base/random.h"

namespace cairn {
namespace {

constexpr std::size_t kRowsOfABlock = 8;
// A period has so many uses per row. With ten, as others have it, ids that fall out of use stay
// longer than they should, and nothing else is gained (bench/notebook.md).
constexpr std::size_t kUsesOfARow = 4;
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

FrequencySketch::FrequencySketch(std::size_t rows)
    : blocks_(std::bit_ceil(std::max<std::size_t>(rows / kRowsOfABlock, 1))),
      period_(std::max<std::size_t>(rows, kRowsOfABlock) * kUsesOfARow) {}

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

void FrequencySketch::age() {
  for (Block& block : blocks_) {
    for (std::uint64_t& word : block.counters) word = (word >> 1) & kHalves;
    block.door = 0;
  }
  uses_ /= 2;
}

}  // namespace cairn
