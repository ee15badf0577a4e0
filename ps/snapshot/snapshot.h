// Snapshot: the rows of a table as they were at one moment, while the table goes on changing: what
// a checkpoint writes.
//
//   Freezing takes constant time. From then on a row is copied aside before its first write
//   (written_rows.h), unless the checkpoint's writer has taken it already: rows are taken in the
//   order of their numbers, or of their places, so that this is one comparison. By rows and not by
//   blocks, because some steps of random rows meet every block of a table, and few of its rows.
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
#include "ps/snapshot/row_order.h"
#include "ps/snapshot/touched_rows.h"
#include "ps/snapshot/written_rows.h"
#include "storage/row_block.h"

namespace cairn::ps {

class Snapshot {
 public:
  static constexpr double kBytesARow = WrittenRows::kBytesARow;

  // In which order rows are taken. By places is for a hashed table whose places go from one row to
  // another: a row is copied aside before it leaves its place, too, and its number with it.
  enum class Order : std::uint8_t { kRows, kPlaces };
  // `memory` holds the table's rows; it and `pool` outlive the snapshot.
  Snapshot(const RowMemory& memory, CopyPool& pool, Order order = Order::kRows);

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
  bool holds_all() const { return all_; }  // of the frozen state
  // Those of these places whose rows changed since the last freeze, if that is tracked; of the
  // others those that the last freeze held, if it was a delta.
  struct Changed {
    std::vector<std::int64_t> since, before;
  };
  Changed changed_among(std::span<const std::int64_t> places);
  // Rows have left these places, after before_write(); one has come from another place to a free
  // one, while nothing is frozen.
  void left(std::span<const std::int64_t> places);
  void moved(std::int64_t from, std::int64_t to);
  // The table holds more rows than before. They are no part of what is frozen.
  void grew();
  // Before the rows are laid anew, and after it.
  void before_new_layout();
  void laid_anew();
  bool untouched() const { return touched_.none(); }
  TouchedRows& touched_rows() { return touched_; }  // of a dense table

  // How many rows a write to these, or to all, would copy.
  //   Cost  a look at each row, or at the bits of all.
  bool copies_on_write() const { return copies_on_write_; }
  std::size_t rows_to_copy(const Places& places) const;
  std::size_t rows_to_copy_of_all() const;
  // The pool would hand out so many bytes for copies of so many rows.
  std::size_t room_for(std::size_t rows) const { return written_.copies().bytes_for(rows); }

  // ---- called for the checkpoint's writer ----
  // The state as of now; a second freeze replaces the first. A delta's rows are those that changed
  // since the last freeze, or since the one that the last one was a delta of. Where that is not
  // known, because nobody had it tracked or the rows were laid anew, they are all that were ever
  // touched.
  enum class Rows : std::uint8_t { kAll, kChanged, kChangedBefore };
  // Which rows change from now on: not tracked, tracked anew, or, while all rows are frozen,
  // tracked since the same freeze as before.
  enum class Tracking : std::uint8_t { kNone, kAnew, kGoesOn };
  void freeze(Rows rows = Rows::kAll, Tracking tracking = Tracking::kNone);
  // The same, where places change: no rows but those at the places of `taken`, a bit each.
  void freeze(Rows rows, Tracking tracking, const std::vector<std::uint64_t>& taken);
  // Whether freeze(rows) would freeze a delta, and not all rows.
  bool knows(Rows rows) const {
    return changed_.has_value() && rows != Rows::kAll && (rows == Rows::kChanged || !all_);
  }
  void thaw();
  bool frozen() const { return frozen_; }
  // The table's record as of the freeze.
  const storage::TableRecord& record() const;
  // How far the writer is: blocks of the frozen state, and those of them that it has passed.
  std::int64_t blocks() const { return frozen_blocks_; }
  std::int64_t taken() const {
    return next_row_ == INT64_MAX ? frozen_blocks_ : written_.block_of(next_);
  }
  // The next rows of the frozen state, at most a block of them; nothing at the end. Rows ascend,
  // also from one block to the next, unless places do. Copies of what was taken are let go.
  std::optional<storage::StoredRows> take();
  storage::StoredRows saved_layout() const;  // without rows
  // A hashed table's rows have to be put in order before the first is taken: prepare() does it in
  // slices of some milliseconds, and take() does what is left.
  bool prepared() const { return order_.prepared(); }
  void prepare();
  std::size_t copied_bytes() const {  // held aside for the writer
    return written_.copies().bytes() + aside_.bytes;
  }

 private:
  void copy_rows_at(std::span<const std::int64_t> places);
  void copy_all_of(std::int64_t block);
  // Notes the row as written since the freeze, and copies it if the checkpoint holds it.
  void copy_aside(std::int64_t place);
  // Whether the writer has still to take it.
  bool to_take(std::int64_t place) const {
    return place < frozen_held_ && (by_row_ ? memory_.row_at(place) >= next_row_ : place >= next_);
  }
  bool would_copy(std::int64_t place) const;
  std::size_t would_copy_all_of(std::int64_t block) const;
  std::int64_t first_block_to_take() const { return by_row_ ? 0 : written_.block_of(next_); }
  // Whether the checkpoint holds it. Exact for a row that was not written since the freeze.
  bool held(std::int64_t place) const {
    return delta_.has_value() ? in_delta(place) : memory_.hashed() || touched_.has(place);
  }
  bool in_delta(std::int64_t place) const {
    const auto word = static_cast<std::size_t>(place) >> 6;
    return delta_.has_value() && word < delta_->size() &&
           ((*delta_)[word] >> (place & 63) & 1) != 0;
  }
  // The same of 64 rows, `place` the first of them; not where rows are taken by order_.
  std::uint64_t held_word(std::int64_t place) const {
    return delta_.has_value() ? (*delta_)[static_cast<std::size_t>(place) >> 6]
                              : touched_.word_of(place);
  }
  void choose_rows_of_delta(Rows rows);
  std::int64_t end_of_places() const { return by_row_ ? order_.size() : frozen_held_; }
  void choose_places();
  storage::StoredRows stored_rows();
  void begin_freeze();
  std::int64_t row_to_store(std::int64_t place) const;

  const RowMemory& memory_;
  const bool places_change_;
  const bool by_row_;    // rows are taken by order_; otherwise by place
  TouchedRows touched_;  // of a dense table
  WrittenRows written_;  // since the freeze
  // hashed: the greatest row number of the first `seen_` places
  std::int64_t greatest_row_ = 0, seen_ = 0;

  bool frozen_ = false;
  bool copies_on_write_ = false;  // frozen, and there is a row that may have to be copied
  std::int64_t frozen_blocks_ = 0;
  std::int64_t frozen_held_ = 0;  // rows at later places are not the checkpoint's
  std::int64_t next_ = 0;         // the place, of a hashed table in order_, that is taken next
  std::int64_t next_row_ = 0;     // the writer has taken all rows below
  RowOrder order_;                // hashed
  // The places that changed since the last freeze, if they are tracked, and those that the last one
  // held, if it was a delta.
  std::optional<TouchedRows> changed_;
  std::optional<std::vector<std::uint64_t>> delta_;
  bool all_ = true;  // the last freeze was of all rows, though delta_ may say which these are
  // After a change of the layout: the blocks that were still to be taken, in the old one.
  struct Aside {
    bool all = false;
    std::deque<storage::StoredRows> blocks;
    std::size_t bytes = 0;
  };
  Aside aside_;
  storage::TableRecord record_;
  std::vector<std::int64_t> places_;  // of the block that is being taken
};

}  // namespace cairn::ps
