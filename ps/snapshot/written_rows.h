// WrittenRows: which rows of a table were written since a moment, and copies of some of them as
// they were then.
//
//   A bit a row says whether it was written. The bits of a block are cleared at the first write to
//   the block: each has the number of the moment that its bits belong to, so that to begin anew is
//   to raise that number. Copies lie in lists, one for each 64 rows.
//   Thread  the table's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/rows/row_memory.h"
#include "ps/snapshot/row_copies.h"

namespace cairn::ps {

class WrittenRows {
 public:
  static constexpr double kBytesARow = 0.1875;  // bits and lists

  // `memory` holds the rows; it and `pool` outlive this.
  // `numbers`: a copy has the number of its row, too.
  WrittenRows(const RowMemory& memory, CopyPool& pool, bool numbers)
      : memory_(memory), pool_(pool), numbers_(numbers) {
    lay();
  }

  // By the rows' size, whose blocks are a checkpoint's. Nothing is written then, nor copied.
  void lay();
  // The table holds more rows than before.
  void grow();
  // From now on no row was written.
  void begin() { ++moment_; }
  void let_copies_go() { copies_->clear(); }

  // Notes the row as written, and copies it if it is to be; nothing if it was noted before.
  enum class Copy : bool { kNo, kYes };
  void write(std::int64_t place, Copy copy);
  bool written(std::int64_t place) const { return (word(place) & bit_of(place)) != 0; }
  // The bits of the row's word: of 64 rows, or of a block that has fewer.
  std::uint64_t word(std::int64_t place) const {
    return marked(block_of(place)) ? marks_[word_of(place)] : 0;
  }
  bool has_copy(std::int64_t place) const { return copy_of(place) != RowCopies::kNone; }
  // Needs has_copy(), and numbers.
  std::int64_t row_of_copy(std::int64_t place) const;
  // Hands the copy over and lets go of it. False: the row was not written. Needs has_copy() of one
  // that was.
  bool take_copy(std::int64_t place, std::byte* to);

  std::int64_t block_rows() const { return std::int64_t{1} << block_shift_; }
  std::int64_t block_of(std::int64_t place) const { return place >> block_shift_; }
  std::int64_t blocks() const { return static_cast<std::int64_t>(marked_in_.size()); }
  const RowCopies& copies() const { return *copies_; }

 private:
  bool marked(std::int64_t block) const {
    return marked_in_[static_cast<std::size_t>(block)] == moment_;
  }
  RowCopies::Slot copy_of(std::int64_t place) const;
  void clear(std::int64_t block);
  std::size_t word_of(std::int64_t place) const {
    return static_cast<std::size_t>(block_of(place)) * words_a_block_ +
           static_cast<std::size_t>((place & (block_rows() - 1)) >> 6);
  }
  // A block of fewer than 64 rows has a word of its own, of which these are any bits.
  static std::uint64_t bit_of(std::int64_t place) { return std::uint64_t{1} << (place & 63); }

  const RowMemory& memory_;
  CopyPool& pool_;
  const bool numbers_;
  int block_shift_ = 0;  // log2 of the rows of a block
  std::size_t words_a_block_ = 1;
  std::uint32_t moment_ = 0;
  std::vector<std::uint32_t> marked_in_;  // by block
  std::vector<std::uint64_t> marks_;
  std::vector<RowCopies::Slot> lists_;  // by word of marks_
  std::optional<RowCopies> copies_;
};

}  // namespace cairn::ps
