// Snapshot: the rows of a table as they were at one moment, while the table goes on changing: what
// a checkpoint writes.
//
//   Freezing takes constant time (a hashed table's: that of sorting its blocks). From then on a
//   block of rows, about 64 KB, is copied aside before its first write, unless the checkpoint's
//   writer has taken it already; so at most one more copy of the rows is held. This is copying on
//   write, as a process does with its pages after fork(), but by blocks that the disk wants anyway.
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
#include "ps/shard/touched_rows.h"
#include "storage/row_block.h"

namespace cairn::ps {

class Snapshot {
 public:
  // `memory` holds the table's rows and outlives the snapshot.
  explicit Snapshot(const RowMemory& memory);

  // ---- called by the table ----
  // Before the rows at these places change, or all rows do.
  void before_write(std::span<const std::int64_t> places) {
    if (frozen_) copy_blocks_of(places);
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

  // ---- called for the checkpoint's writer ----
  // The state as of now; a second freeze replaces the first.
  void freeze();
  void thaw();
  bool frozen() const { return frozen_; }
  // The table's record as of the freeze.
  const storage::TableRecord& record() const;
  std::int64_t blocks() const { return frozen_blocks_; }  // of the frozen state
  // The rows of the `nth` block that were ever touched, or nothing; blocks are in the order of
  // their first rows. Each once: its copy is let go.
  std::optional<storage::StoredRows> take(std::int64_t nth);
  std::size_t copied_bytes() const { return copied_bytes_; }  // held aside for the writer

 private:
  void cut_blocks();
  void copy_blocks_of(std::span<const std::int64_t> places);
  void copy_aside(std::int64_t block);
  bool taken(std::int64_t block) const {
    return taken_in_[static_cast<std::size_t>(block)] == epoch_;
  }
  storage::StoredRows stored_rows(std::int64_t block) const;

  const RowMemory& memory_;
  TouchedRows touched_;  // of a dense table
  int block_shift_ = 0;  // log2 of the rows of a block
  std::int64_t blocks_ = 0;
  // Hashed, by block: its least row, by which the blocks of a checkpoint are ordered.
  std::vector<std::int64_t> least_row_;

  bool frozen_ = false;
  // The layout has changed since the freeze: every frozen block lies in aside_.
  bool all_aside_ = false;
  std::int64_t frozen_blocks_ = 0;
  std::int64_t frozen_held_ = 0;            // rows at later places are not the checkpoint's
  std::vector<std::int64_t> frozen_order_;  // hashed: the blocks by their least rows
  std::uint32_t epoch_ = 0;                 // freezes so far
  // By block: the last freeze for which it was copied aside or taken.
  std::vector<std::uint32_t> taken_in_;
  std::unordered_map<std::int64_t, storage::StoredRows> aside_;
  std::size_t copied_bytes_ = 0;
  storage::TableRecord record_;
};

}  // namespace cairn::ps
