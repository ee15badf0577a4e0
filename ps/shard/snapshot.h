// Snapshot: the rows of a table as they were at one moment, while the table goes on changing: what
// a checkpoint writes.
//
//   Freezing takes constant time (a hashed table's: that of sorting its blocks). From then on a row
//   is copied aside before its first write, unless the checkpoint's writer has taken its block
//   already. A bit a row says whether it was written since the freeze; the bits of a block are
//   cleared at the first write to the block, which is why a freeze need not touch them. By rows and
//   not by blocks, because some steps of random rows meet every block of a table, and few of its
//   rows.
//   It also knows which rows were ever touched: the others are a function of the seed, and no
//   checkpoint holds them.
//   Thread  the table's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/rows/row_memory.h"
#include "ps/shard/row_copies.h"
#include "ps/shard/touched_rows.h"
#include "storage/row_block.h"

namespace cairn::ps {

class Snapshot {
 public:
  static constexpr double kBytesARow = 0.125;  // marks of a dense table's rows

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
  // The table holds more rows than before. They are no part of what is frozen.
  void grew();
  // Before the rows are laid anew, and after it.
  void before_new_layout();
  void laid_anew() { cut_blocks(); }
  bool untouched() const { return touched_.none(); }
  // Every row of a dense table has its initial value again.
  void forget_touched() { touched_.clear(); }

  // How many rows a write to these, or to all, would copy.
  //   Cost  a look at each row, or at the bits of all.
  bool copies_on_write() const { return copies_on_write_; }
  std::size_t rows_to_copy(const Places& places) const;
  std::size_t rows_to_copy_of_all() const;
  // The pool would hand out so many bytes for copies of so many rows.
  std::size_t room_for(std::size_t rows) const { return copies_->bytes_for(rows); }

  // ---- called for the checkpoint's writer ----
  // The state as of now; a second freeze replaces the first.
  void freeze();
  void thaw();
  bool frozen() const { return frozen_; }
  // The table's record as of the freeze.
  const storage::TableRecord& record() const;
  std::int64_t blocks() const { return frozen_blocks_; }  // of the frozen state
  // The rows of the `nth` block that were ever touched, or nothing; blocks are in the order of
  // their first rows. Each once: its copies are let go.
  std::optional<storage::StoredRows> take(std::int64_t nth);
  std::size_t copied_bytes() const {  // held aside for the writer
    return copies_->bytes() + aside_bytes_;
  }

 private:
  struct Block {
    std::uint32_t marked_in = 0;  // the freeze that its bits and its copies belong to
    // The last freeze for which no row of it is copied any more: it was taken, or all of it is
    // aside.
    std::uint32_t closed_in = 0;
    std::uint32_t taken_in = 0;  // the last freeze for which the writer took it
    RowCopies::Slot copies = RowCopies::kNone;
  };

  void cut_blocks();
  void copy_rows_at(std::span<const std::int64_t> places);
  void copy_all_of(std::int64_t block);
  // Notes the row as written since the freeze, and copies it if the checkpoint holds it.
  void copy_aside(Block& block, std::int64_t place);
  void clear_marks(Block& block, std::int64_t number);
  void close(Block& block);
  bool would_copy(std::int64_t place) const;
  std::size_t would_copy_all_of(std::int64_t block) const;
  std::int64_t block_of(std::int64_t place) const { return place >> block_shift_; }
  const Block& block(std::int64_t number) const {
    return blocks_[static_cast<std::size_t>(number)];
  }
  Block& block(std::int64_t number) { return blocks_[static_cast<std::size_t>(number)]; }
  std::size_t word_of(std::int64_t place) const {
    const std::int64_t within = place & ((std::int64_t{1} << block_shift_) - 1);
    return static_cast<std::size_t>(block_of(place)) * words_a_block_ +
           static_cast<std::size_t>(within >> 6);
  }
  static std::uint64_t bit_of(std::int64_t within) { return std::uint64_t{1} << (within & 63); }
  // Whether it was ever touched. Exact for a row that was not written since the freeze.
  bool ever_touched(std::int64_t place) const { return memory_.hashed() || touched_.has(place); }
  storage::StoredRows stored_rows(std::int64_t block);
  void let_copies_go(Block& block);

  const RowMemory& memory_;
  CopyPool& pool_;
  TouchedRows touched_;  // of a dense table
  int block_shift_ = 0;  // log2 of the rows of a block
  std::size_t words_a_block_ = 1;
  std::vector<Block> blocks_;
  std::vector<std::uint64_t> marks_;  // a bit a row: written since the freeze of marked_in
  std::optional<RowCopies> copies_;
  // Hashed, by block: its least row, by which the blocks of a checkpoint are ordered.
  std::vector<std::int64_t> least_row_;

  bool frozen_ = false;
  bool copies_on_write_ = false;  // frozen, and there is a block that is not closed
  std::uint32_t epoch_ = 0;       // freezes so far
  std::int64_t frozen_blocks_ = 0, open_blocks_ = 0;
  std::int64_t frozen_held_ = 0;            // rows at later places are not the checkpoint's
  std::vector<std::int64_t> frozen_order_;  // hashed: the blocks by their least rows
  // After a change of the layout: the blocks that were still to be taken, in the old one.
  bool all_aside_ = false;
  std::unordered_map<std::int64_t, storage::StoredRows> aside_;
  std::size_t aside_bytes_ = 0;
  storage::TableRecord record_;
  // The block that is being taken: each row's copy or null, and the places of its rows.
  std::vector<const std::byte*> copy_of_;
  std::vector<std::int64_t> places_;
};

}  // namespace cairn::ps
