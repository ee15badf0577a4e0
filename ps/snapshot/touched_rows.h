// Which rows of a part were ever updated: a checkpoint holds these alone, for the others are a
// function of the seed.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rows/layout.h"

namespace cairn::ps {

// A bit a row, set late: the random rows of one update touch as many lines of the bits as they are,
// which would have to come from memory for each. Row numbers are noted first, an eighth of a byte a
// row of them, and a line then serves several.
//   Thread  one.
class TouchedRows {
 public:
  static constexpr double kBytesARow = 0.25;  // bits and notes

  explicit TouchedRows(std::int64_t rows = 0);
  // There are so many rows now, no fewer than before.
  void grow(std::int64_t rows);
  // Marks rows as updated: any of 0 to `rows` - 1, in any order.
  void add(std::span<const std::int64_t> rows);
  void add(RowRange rows);
  // Rows as if they had never been updated.
  void remove(std::span<const std::int64_t> rows);
  // If `from` is among them, `to` is from then on, in its place.
  void move(std::int64_t from, std::int64_t to);
  // From then on has() knows all that was added; before, it may miss some.
  void settle();
  bool has(std::int64_t row) const {
    return (words_[static_cast<std::size_t>(row) >> 6] >> (row & 63) & 1) != 0;
  }
  // The bits of 64 rows, `row` the first; a multiple of 64.
  std::uint64_t word_of(std::int64_t row) const {
    return words_[static_cast<std::size_t>(row) >> 6];
  }
  // A bit a row, the least of the first word for row 0. Needs settle().
  const std::vector<std::uint64_t>& words() const { return words_; }
  bool none() const;
  void clear();
  // The rows that were added, as ranges in order. Needs settle().
  template <typename Take>
  void for_each_range(Take take) const;

 private:
  void set(std::span<const std::int64_t> rows);
  std::vector<std::uint64_t> words_;
  std::vector<std::int64_t> noted_;
  std::size_t noted_max_ = 0;
};

template <typename Take>
void TouchedRows::for_each_range(Take take) const {
  const auto rows = static_cast<std::int64_t>(words_.size() * 64);
  // The first row at or after `row` that is in the set, or is not; words without one are skipped.
  const auto find = [&](std::int64_t row, bool wanted) {
    const std::uint64_t flip = wanted ? 0 : ~std::uint64_t{0};
    for (auto word = static_cast<std::size_t>(row) >> 6; word < words_.size(); ++word) {
      std::uint64_t bits = words_[word] ^ flip;
      if (word == static_cast<std::size_t>(row) >> 6) bits &= ~std::uint64_t{0} << (row & 63);
      if (bits != 0) return static_cast<std::int64_t>(word * 64) + std::countr_zero(bits);
    }
    return rows;
  };
  for (std::int64_t row = 0; row < rows;) {
    const std::int64_t begin = find(row, true);
    if (begin == rows) return;
    row = find(begin, false);
    take(RowRange{begin, row});
  }
}

}  // namespace cairn::ps
