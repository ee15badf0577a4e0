// Table: one part of one variable: its rows with their slots in memory, and a frozen view of them
// while a checkpoint is written.
//
//   Layout  Variables of rank >= 2 keep parameters and slots of a row side by side, a row of up to
//           64 bytes padded to a power of two so that it lies in one cache line. Rank 0 and 1 keep
//           planes, so that reading the whole is one copy.
//   Hashed  Such a variable's rows lie in the order of their first updates, found by an index over
//           their numbers. One that was never updated reads as its initial value and takes no
//           memory.
//   Rows are numbered from the part's begin ("local"); where one lies is its place. Callers have
//   verified rule, row numbers and sizes: see shard.h.
//   Thread  the shard's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/graph/update_rule.h"
#include "core/graph/variable.h"
#include "core/memory/arena.h"
#include "core/memory/loan.h"
#include "core/rows/id_index.h"
#include "core/rows/layout.h"
#include "ps/requests.h"
#include "ps/touched_rows.h"
#include "storage/row_block.h"

namespace cairn::ps {

class Table {
 public:
  // Rows `range` of the variable, at their initial values.
  // Errors  ResourceExhausted: not enough memory.
  Table(std::shared_ptr<const VariableSpec> spec, UpdateRule rule, RowRange range,
        std::uint64_t seed);

  // What such a table takes, roughly, without making it; at most 2^62.
  static std::size_t bytes_for(const VariableSpec& spec, const UpdateRule& rule, RowRange range);

  const VariableSpec& spec() const { return *spec_; }
  RowRange range() const { return range_; }
  std::int64_t rows() const { return range_.size(); }
  bool hashed() const { return index_.has_value(); }
  std::int64_t held() const { return hashed() ? index_->size() : rows(); }  // rows in memory
  const UpdateRule& rule() const { return rule_; }  // the one that has slots; an assignment if none
  std::size_t row_bytes() const { return row_bytes_; }  // of the parameters, as they travel
  std::int64_t updates() const { return updates_; }     // t
  // at first 1, and one more after each push, or slice of one, that reached it
  std::uint64_t written() const { return written_; }
  void count_write() { ++written_; }
  std::size_t memory_bytes() const;
  std::size_t place_bytes() const;  // what one more row takes at most, with its slots

  // Lays the rows anew with the slots of `rule`, at their initial values; the parameters stay. A
  // rule of the same kind keeps the slots as they are.
  // Errors  ResourceExhausted: not enough memory; nothing has changed.
  void set_rule(const UpdateRule& rule);

  // Copies rows to `out`, packed, in the order of `ids`, prefetching ahead.
  void gather(std::span<const std::int64_t> ids, std::byte* out,
              NextReader next = NextReader::kThisCore);
  // of a table that is not hashed
  void read_all(std::byte* out, NextReader next = NextReader::kThisCore) const;
  // Many rows that lie together as they travel, where they lie, padded to a multiple of 8 bytes;
  // null: they do not lie so, copy them. As long as the loan lives it reads as the rows do now:
  // before they change, what is lent of them is copied aside. Outlives the table if need be.
  std::shared_ptr<Loan> lend(RowRange rows);

  // One update: `ids` ascending and distinct, with `values` packed beside them; or every row, of a
  // table that is not hashed, as a table rule also wants. `continues`: further rows of the update
  // before it; no table rule can do that.
  //   Errors  ResourceExhausted: no memory for rows that a hashed table does not hold yet; no row
  //           was updated.
  void apply(const UpdateRule& rule, float learning_rate, std::span<const std::int64_t> ids,
             const std::byte* values, bool continues = false);
  void apply_dense(const UpdateRule& rule, float learning_rate, const std::byte* values);

  // Freezes the table as of now, in constant time (hashed: in that of its blocks); a row block is
  // copied aside before its first write after it. A second freeze replaces the first.
  void freeze();
  void thaw();
  bool frozen() const { return frozen_; }
  // The frozen rows of the `nth` block that were ever touched, or nothing; blocks are in the order
  // of their first rows. Each once: its copy is let go.
  std::optional<storage::StoredRows> take_frozen(std::int64_t nth);
  storage::TableRecord frozen_record() const;
  std::int64_t frozen_blocks() const { return frozen_blocks_; }
  std::size_t copied_bytes() const { return copied_bytes_; }  // held aside for the writer

  // Everything back to initial values, nothing touched.
  void reset();
  // Sets those of `stored`'s rows that lie in this part; its slots too where they are of this
  // table's rule. Returns how many rows were set.
  // Errors  DataLoss: rows of another width.
  std::int64_t put(const storage::StoredRows& stored);
  void set_updates(std::int64_t updates) { updates_ = updates; }

 private:
  bool planar() const { return spec_->shape.rank() < 2; }
  std::size_t slot_bytes() const { return static_cast<std::size_t>(slot_width_) * element_; }
  void lay_out(const UpdateRule& rule);
  void initialize(std::int64_t begin, std::int64_t end);  // places
  void initialize_slots(std::int64_t begin, std::int64_t end);
  void lay_out_blocks();
  std::byte* parameters(std::int64_t place) const;
  std::byte* slot(std::int64_t place, std::uint32_t index) const;
  std::span<const std::int64_t> places(std::span<const std::int64_t> ids);
  std::span<const std::int64_t> places_made(std::span<const std::int64_t> ids);
  void make_room(std::int64_t count);
  void before_write(std::span<const std::int64_t> places);
  void before_write_all();
  void copy_aside(std::int64_t index);
  void before_write_of_lent(std::span<const std::int64_t> places);
  void before_write_of_lent();
  void end_loan(Loan& loan);
  storage::StoredRows stored_rows(std::int64_t index) const;
  RowBlock row_block(RowRange places) const;

  std::shared_ptr<const VariableSpec> spec_;
  UpdateRule rule_;
  RowRange range_;
  std::uint64_t seed_;
  std::size_t element_ = 4;  // bytes
  std::int64_t dim_ = 1;
  std::uint32_t slots_ = 0;
  std::int64_t slot_width_ = 1;  // elements
  std::size_t row_bytes_ = 0;
  std::int64_t stride_ = 0;                                   // elements
  std::int64_t slot_offset_ = 0;                              // elements
  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();  // loans share it
  std::vector<std::pair<RowRange, std::weak_ptr<Loan>>> loans_;
  std::int64_t updates_ = 0;
  std::uint64_t written_ = 1;
  TouchedRows touched_;               // of a hashed table all rows held are
  std::optional<IdIndex> index_;      // of a hashed one: local row number -> place
  std::vector<std::int64_t> places_;  // of the call under way, and which of its rows have none
  std::vector<std::size_t> absent_;

  int block_shift_ = 0;  // log2 of the rows of a block
  std::int64_t blocks_ = 0;
  bool frozen_ = false;
  // the layout has changed since the freeze: every frozen block lies in aside_
  bool all_aside_ = false;
  std::int64_t frozen_blocks_ = 0;
  std::int64_t frozen_held_ = 0;            // later rows are not the checkpoint's
  std::vector<std::int64_t> frozen_order_;  // hashed: the blocks by their least rows
  std::vector<std::int64_t> least_row_;     // hashed, by block
  std::uint32_t epoch_ = 0;                 // freezes so far
  // by block: the last freeze for which it was copied aside or taken
  std::vector<std::uint32_t> taken_in_;
  std::unordered_map<std::int64_t, storage::StoredRows> aside_;
  std::size_t copied_bytes_ = 0;
  storage::TableRecord frozen_record_;
};

}  // namespace cairn::ps
