// FrequencySketch: about how often an id was asked for lately, of any number of ids, in 8 to 16
// bytes per row of a cache.
//
//   A count-min sketch of 4-bit counters behind a doorkeeper: an id's first use of a period sets
//   two bits, and only further ones count, so that ids that come once leave the counters alone.
//   After four uses per row of the cache all counters are halved and the doorkeeper is emptied:
//   older uses are forgotten. An id's bits and counters lie in one cache line.
//   Source  Einziger, Friedman, Manes, "TinyLFU: a highly efficient cache admission policy", ACM
//           Trans. Storage 13(4), 2017.
//   Thread  one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

class FrequencySketch {
 public:
  static constexpr std::uint32_t kMost = 16;  // that count() ever says
  // With ten, as others have it, ids that fall out of use stay longer than they should, and nothing
  // else is gained (bench/notebook.md).
  static constexpr std::size_t kUsesOfARow = 4;

  // For a cache of `rows`, with a period of so many uses a row.
  explicit FrequencySketch(std::size_t rows, std::size_t uses_of_a_row = kUsesOfARow);

  // Counts one use. `hash` must be well mixed, as by mix_bits().
  void add(std::uint64_t hash);
  // Uses of late, 0 to kMost; rarely more than there were.
  std::uint32_t count(std::uint64_t hash) const;
  void prefetch(std::uint64_t hash) const {
    __builtin_prefetch(&blocks_[hash & (blocks_.size() - 1)]);
  }
  std::size_t bytes() const { return blocks_.size() * sizeof(Block); }

  // All that it has counted, for a checkpoint; and back. Other counts are added to those that are
  // there, as those of two parts that become one.
  //   Result  false: they are of a sketch of another size, and nothing is added.
  //   Errors  DataLoss: these are not a sketch's.
  std::string saved() const;
  bool add_saved(std::string_view saved);

 private:
  static constexpr std::size_t kCounterWords = 7, kCounters = 4;
  struct alignas(64) Block {
    std::array<std::uint64_t, kCounterWords> counters = {};  // 16 each
    std::uint64_t door = 0;                                  // 64 bits
  };

  void age();
  static void add(Block& to, const Block& other);

  std::vector<Block> blocks_;
  std::size_t uses_ = 0, period_;
};

}  // namespace cairn
