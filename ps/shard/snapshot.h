// Snapshot: the rows of a table as they were at one moment, while the table goes on changing: what
// a checkpoint writes.
//
//   Freezing takes constant time. From then on a row is copied aside before its first write, unless
//   the checkpoint's writer has taken it already: rows are taken in the order of their numbers, so
//   that this is one comparison. A bit a row says whether it was written since the freeze; the bits
//   of a block are cleared at the first write to the block, which is why a freeze need not touch
//   them. By rows and not by blocks, because some steps of random rows meet every block of a table,
//   and few of its rows.
//   It also knows which rows were ever touched: the others are a function of the seed, and no
//   checkpoint holds them. Once asked to, it tracks which rows changed since a freeze, so that a
//   later one may hold those alone: a delta.
//   Memory  while frozen, 4 bytes a row of a hashed table, and the copies.
//   Thread  the table's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/rows/row_memory.h"
#include "ps/shard/row_copies.h"
#include "ps/shard/row_order.h"
#include "ps/shard/touched_rows.h"
#include "storage/row_block.h"

namespace cairn::ps {

class Snapshot {
 public:
  static constexpr double kBytesARow = 0.1875;  // marks and lists of a dense table's rows

  // `memory` holds the table's rows; it and `pool` outlive the snapshot.
  Snapshot(const RowMemory& memory, CopyPool& pool);

  // ---- called by the table ----
  // Before the rows at these places change, or all rows do.
  void before_write(std::span<const std::int64_t> places) {
    if (copies_on_write_) copy_rows_at(places);
  }
  void before_write_all();
  // The rows at these places were written to, or all rows were. A hashed table's need not be named:
  // those it holds were all touched.
  void touch(const Places& places);
  void touch_all();
  // Any of the rows that were ever touched changes, named or not: a delta has to hold them all.
  void all_change() { changed_.reset(); }
  bool holds_all() const { return !delta_.has_value(); }  // of the frozen state
  // The table holds more rows than before. They are no part of what is frozen.
  void grew();
  // Before the rows are laid anew, and after it.
  void before_new_layout();
  void laid_anew() { cut_blocks(); }
  bool untouched() const { return touched_.none(); }
  TouchedRows& touched_rows() { return touched_; }  // of a dense table

  // How many rows a write to these, or to all, would copy.
  //   Cost  a look at each row, or at the bits of all.
  bool copies_on_write() const { return copies_on_write_; }
  std::size_t rows_to_copy(const Places& places) const;
  std::size_t rows_to_copy_of_all() const;
  // The pool would hand out so many bytes for copies of so many rows.
  std::size_t room_for(std::size_t rows) const { return copies_->bytes_for(rows); }

  // ---- called for the checkpoint's writer ----
  // The state as of now; a second freeze replaces the first. A delta's rows are those that changed
  // since the last freeze, or since the one that the last one was a delta of. Where that is not
  // known, because nobody had it tracked or the rows were laid anew, they are all that were ever
  // touched.
  enum class Rows : std::uint8_t { kAll, kChanged, kChangedBefore };
  void freeze(Rows rows = Rows::kAll, bool track = false);
  void thaw();
  bool frozen() const { return frozen_; }
  // The table's record as of the freeze.
  const storage::TableRecord& record() const;
  // How far the writer is: blocks of the frozen state, and those of them that it has passed.
  std::int64_t blocks() const { return frozen_blocks_; }
  std::int64_t taken() const { return next_row_ == INT64_MAX ? frozen_blocks_ : block_of(next_); }
  // The next rows of the frozen state, at most a block of them; nothing at the end. Rows ascend,
  // also from one block to the next. Copies of what was taken are let go.
  std::optional<storage::StoredRows> take();
  // A hashed table's rows have to be put in order before the first is taken: prepare() does it in
  // slices of some milliseconds, and take() does what is left.
  bool prepared() const { return order_.prepared(); }
  void prepare();
  std::size_t copied_bytes() const {  // held aside for the writer
    return copies_->bytes() + aside_bytes_;
  }

 private:
  void cut_blocks();
  void copy_rows_at(std::span<const std::int64_t> places);
  void copy_all_of(std::int64_t block);
  // Notes the row as written since the freeze, and copies it if the checkpoint holds it.
  void copy_aside(std::int64_t place);
  void clear_marks(std::int64_t block);
  // Whether the writer has still to take it.
  bool to_take(std::int64_t place) const {
    return place < frozen_held_ && memory_.row_at(place) >= next_row_;
  }
  bool marked(std::int64_t block) const {
    return marked_in_[static_cast<std::size_t>(block)] == epoch_;
  }
  // Whether it was written since the freeze.
  bool written(std::int64_t place) const {
    return marked(block_of(place)) && (marks_[word_of(place)] & bit_of(place)) != 0;
  }
  bool would_copy(std::int64_t place) const;
  std::size_t would_copy_all_of(std::int64_t block) const;
  std::int64_t block_of(std::int64_t place) const { return place >> block_shift_; }
  std::int64_t first_block_to_take() const { return memory_.hashed() ? 0 : block_of(next_); }
  std::size_t word_of(std::int64_t place) const {
    const std::int64_t within = place & ((std::int64_t{1} << block_shift_) - 1);
    return static_cast<std::size_t>(block_of(place)) * words_a_block_ +
           static_cast<std::size_t>(within >> 6);
  }
  // A block of fewer than 64 rows has a word of its own, of which these are any bits.
  static std::uint64_t bit_of(std::int64_t place) { return std::uint64_t{1} << (place & 63); }
  // Whether the checkpoint holds it. Exact for a row that was not written since the freeze.
  bool held(std::int64_t place) const {
    return delta_.has_value()
               ? ((*delta_)[static_cast<std::size_t>(place) >> 6] >> (place & 63) & 1) != 0
               : memory_.hashed() || touched_.has(place);
  }
  // The same of 64 rows, `place` the first of them; not of a hashed table.
  std::uint64_t held_word(std::int64_t place) const {
    return delta_.has_value() ? (*delta_)[static_cast<std::size_t>(place) >> 6]
                              : touched_.word_of(place);
  }
  void choose_rows_of_delta(Rows rows);
  bool has_copy(std::int64_t place) const;
  // Its copy, which leaves its list and is the caller's to remove; kNone: it was not written.
  RowCopies::Slot unlink_copy(std::int64_t place);
  std::int64_t end_of_places() const { return memory_.hashed() ? order_.size() : frozen_held_; }
  void choose_places();
  storage::StoredRows stored_rows();

  const RowMemory& memory_;
  CopyPool& pool_;
  TouchedRows touched_;  // of a dense table
  int block_shift_ = 0;  // log2 of the rows of a block
  std::size_t words_a_block_ = 1;
  std::vector<std::uint32_t> marked_in_;  // by block: the freeze that its words and lists belong to
  std::vector<std::uint64_t> marks_;      // a bit a row: written since the freeze
  std::vector<RowCopies::Slot> lists_;    // by word of marks_: the copies of its rows
  std::optional<RowCopies> copies_;
  // hashed: the greatest row number of the first `seen_` places
  std::int64_t greatest_row_ = 0, seen_ = 0;

  bool frozen_ = false;
  bool copies_on_write_ = false;  // frozen, and there is a row that may have to be copied
  std::uint32_t epoch_ = 0;       // freezes so far
  std::int64_t frozen_blocks_ = 0;
  std::int64_t frozen_held_ = 0;  // rows at later places are not the checkpoint's
  std::int64_t next_ = 0;         // the place, of a hashed table in order_, that is taken next
  std::int64_t next_row_ = 0;     // the writer has taken all rows below
  RowOrder order_;                // hashed
  // The places that changed since the last freeze, if they are tracked, and those that the last one
  // held, if it was a delta.
  std::optional<TouchedRows> changed_;
  std::optional<std::vector<std::uint64_t>> delta_;
  // After a change of the layout: the blocks that were still to be taken, in the old one.
  bool all_aside_ = false;
  std::deque<storage::StoredRows> aside_;
  std::size_t aside_bytes_ = 0;
  storage::TableRecord record_;
  std::vector<std::int64_t> places_;  // of the block that is being taken
};

}  // namespace cairn::ps
