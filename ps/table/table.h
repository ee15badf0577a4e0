// Table: one part of one variable on a shard: its rows in memory, what a checkpoint has frozen of
// them, what is lent of them, and which of them are on a disk. It keeps these in step: before rows
// change, or leave, the snapshot and the loans save what they still need.
//
//   Rows are numbered from the part's begin ("local"): see RowMemory. Callers have verified rule,
//   row numbers and sizes: see shard.h.
//   Thread  the shard's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/rows/row_memory.h"
#include "core/rows/row_turnover.h"
#include "ps/snapshot/departures.h"
#include "ps/snapshot/snapshot.h"
#include "ps/table/lending.h"
#include "ps/table/table_changes.h"
#include "ps/tier/table_tier.h"

namespace cairn::ps {

class Table {
 public:
  // Rows `range` of the variable, at their initial values. `pool`, for rows that are copied aside
  // for a checkpoint, outlives the table, and so does `tier`, if there is one: then rows of a
  // hashed table may be elsewhere.
  // Errors  ResourceExhausted: not enough memory.
  Table(std::shared_ptr<const VariableSpec> spec, const UpdateRule& rule, RowRange range,
        std::uint64_t seed, CopyPool& pool, const TableTier::Shared* tier = nullptr);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // The bytes that such a table would take, roughly; at most 2^62. Makes no table.
  static std::size_t bytes_for(const VariableSpec& spec, const UpdateRule& rule, RowRange range);

  const VariableSpec& spec() const { return memory_.spec(); }
  RowRange range() const { return memory_.range(); }
  std::int64_t rows() const { return memory_.rows(); }
  bool hashed() const { return memory_.hashed(); }
  bool evicts() const { return memory_.spec().policy.evicts(); }  // rows, for good
  std::int64_t held() const { return memory_.held(); }            // places in memory
  std::int64_t used() const { return memory_.used(); }            // of these, that have a row
  const UpdateRule& rule() const { return memory_.rule(); }
  // of a row's parameters, as they travel
  std::size_t row_bytes() const { return memory_.layout().row_bytes(); }
  std::size_t saved_row_bytes() const { return memory_.layout().saved_row_bytes(); }  // with slots
  std::int64_t updates() const { return memory_.updates(); }                          // t
  void set_updates(std::int64_t updates) { memory_.set_updates(updates); }
  // at first 1, and one more after each push, or slice of one, that reached it
  std::uint64_t written() const { return written_; }
  void count_write() { ++written_; }
  void set_written(std::uint64_t written) { written_ = written; }
  std::size_t memory_bytes() const { return memory_.bytes() + bytes_beside(); }
  std::size_t place_bytes() const { return memory_.place_bytes(); }

  // Null: all rows are always here.
  TableTier* tier() { return tier_.get(); }
  const TableTier* tier() const { return tier_.get(); }
  // Rows that were fetched come into the table.
  // Errors  ResourceExhausted: not enough memory.
  void bring(const TableTier::Fetched& fetched);
  // Up to `most` rows leave, none that was used at `before` or later. Returns how many: fewer if
  // the store, or the pool for copies, has no room for more.
  // Errors  the store's: nothing has changed.
  std::size_t evict(std::size_t most, TableTier::Moment before);

  // After rows have left: places that the table may not have any more go. Not while a checkpoint
  // wants rows from where they lie.
  void compact();

  // Gradients of rows that were not admitted, and rows that have gone for good, since the table was
  // made or last restored.
  std::uint64_t dropped() const { return turnover_ == nullptr ? 0 : turnover_->dropped(); }
  std::uint64_t gone() const { return gone_count_; }

  // Errors  FailedPrecondition: the rule has other slots, and some rows are written elsewhere.
  void verify_new_rule(const UpdateRule& rule) const;
  // Lays the rows anew with the slots of `rule`, see RowMemory::set_rule(). Errors  also those of
  // verify_new_rule().
  void set_rule(const UpdateRule& rule);

  // Copies rows to `out`, packed, in the order of `rows`, prefetching ahead.
  void read(std::span<const std::int64_t> rows, std::byte* out,
            NextReader next = NextReader::kThisCore) {
    memory_.read(memory_.find(rows), out, next);
  }
  // of a table that is not hashed
  void read_all(std::byte* out, NextReader next = NextReader::kThisCore) const {
    memory_.read_all(out, next);
  }
  // Adds those of the rows that a hashed table does not hold.
  void add_absent(std::span<const std::int64_t> rows, std::vector<std::int64_t>& absent) {
    for (const std::size_t i : memory_.find(rows).absent) absent.push_back(rows[i]);
  }
  // Local rows of a table that is not hashed, each with its slots: saved_row_bytes() a row.
  void save(RowRange rows, std::byte* out) const { memory_.save(rows, out); }
  // See Lending::lend().
  std::shared_ptr<Loan> lend(RowRange rows) { return lending_.lend(memory_, rows); }

  // The rows at these places, with their slots, in the order of their numbers; places without a row
  // are left out.
  storage::StoredRows rows_at(RowRange places) const;
  // The same; each has a row.
  storage::StoredRows rows_of_places(std::vector<std::int64_t> places) const;

  // One update: `rows` ascending and distinct, with `values` packed beside them; or every row, of a
  // table that is not hashed, as a table rule also wants. `continues`: further rows of the update
  // before it; no table rule can do that.
  //   Errors  ResourceExhausted: no memory for rows that a hashed table does not hold yet; no row
  //           was updated.
  void update(const UpdateRule& rule, float learning_rate, std::span<const std::int64_t> rows,
              const std::byte* values, bool continues = false);
  void update_all(const UpdateRule& rule, float learning_rate, const std::byte* values);

  // ---- for subscribers, by their numbers ----
  // The book of one subscriber; follow() makes it, if it is not there. Null: it does not follow.
  TableChanges& follow(std::uint64_t subscriber);
  TableChanges* follower(std::uint64_t subscriber);
  void unfollow(std::uint64_t subscriber);
  // Sets the places of all rows that may differ from what a description of the variable tells.
  void mark_touched(TouchedRows& places);
  // Appends the places of these rows, -1 for those that are not in memory; and the rows at these
  // places, with their parameters.
  void add_places(std::span<const std::int64_t> rows, std::vector<std::int64_t>& places);
  void add_rows_at(std::span<const std::int64_t> places, std::vector<std::int64_t>& rows,
                   std::vector<std::byte>& values) const;

  // For a checkpoint: see Snapshot.
  void freeze(Snapshot::Rows rows, Snapshot::Tracking tracking);
  void thaw();
  // The rows that were elsewhere, in any order. Null: none were.
  storage::ColdCut* frozen_elsewhere() { return cold_.get(); }
  // Rows of no number and no value, as the others of the table are saved.
  storage::StoredRows saved_layout() const { return snapshot_.saved_layout(); }
  storage::TableRecord frozen_record() const {
    storage::TableRecord record = snapshot_.record();
    record.whole = whole_in_delta_;
    return record;
  }
  std::int64_t frozen_blocks() const { return snapshot_.blocks(); }
  bool frozen_whole() const { return snapshot_.holds_all(); }
  // Whether take_frozen() gives rows in the order of their numbers, those of one block behind those
  // of the one before.
  bool in_order() const { return departures_ == nullptr; }
  // Rows that went, ascending, local: of a delta, once.
  std::vector<std::int64_t> take_gone() {
    return departures_ == nullptr ? std::vector<std::int64_t>() : departures_->take_gone();
  }
  const std::optional<storage::SeenRows>& frozen_seen() const { return seen_; }
  std::int64_t frozen_taken() const { return snapshot_.taken(); }
  std::optional<storage::StoredRows> take_frozen() { return snapshot_.take(); }
  bool frozen_prepared() const { return snapshot_.prepared(); }
  void prepare_frozen() { snapshot_.prepare(); }
  bool copies_on_write() const { return snapshot_.copies_on_write(); }
  // How many rows an update of these, or of all, would copy aside; and what the pool would hand out
  // for copies of so many, in bytes.
  std::size_t rows_to_copy(std::span<const std::int64_t> rows) {
    return snapshot_.copies_on_write() ? snapshot_.rows_to_copy(memory_.find(rows)) : 0;
  }
  std::size_t rows_to_copy_of_all() const { return snapshot_.rows_to_copy_of_all(); }
  std::size_t room_for_copies(std::size_t rows) const { return snapshot_.room_for(rows); }

  // Everything goes back to initial values, and nothing is touched. Rows of a dense table that were
  // touched keep their values until end_restore(), which resets those that were not put meanwhile:
  // the table must not be read before that. It may begin again instead.
  void begin_restore();
  void end_restore();
  // The part of end_restore() that is about these rows, ascending.
  void reset_stale(std::span<const std::int64_t> rows);
  // Whether rows come with their slots, or leave those that are there.
  enum class Slots { kTake, kAsTheyAre };
  // Roughly so many rows in all are about to be put.
  // Errors  ResourceExhausted: not enough memory.
  void expect(std::int64_t rows) { memory_.expect(rows); }
  // The local numbers of those of `stored`'s rows that lie in this part.
  std::vector<std::int64_t> rows_of(const storage::StoredRows& stored) const;
  // Sets those of `stored`'s rows that lie in this part; its slots too where they are to be taken
  // and of this table's kind of rule. Returns how many rows were set.
  // Errors  DataLoss: rows of another width. ResourceExhausted: not enough memory.
  std::int64_t put(const storage::StoredRows& stored, Slots take = Slots::kTake);
  // Adds what a part of the variable had seen of rows that it had not admitted.
  //   Errors  DataLoss: it is damaged.
  void put(const storage::SeenRows& seen);

 private:
  // Whether rows that are set have changed by that, or are only in memory again.
  enum class Change : std::uint8_t { kYes, kNo };
  Places put(const storage::StoredRows& stored, Slots take, Change change);
  std::size_t bytes_beside() const;
  void freeze_places(Snapshot::Rows rows, Snapshot::Tracking tracking);
  void turn_over();
  void sweep();
  void let_go(std::span<const std::int64_t> places);
  void note_taken(std::span<const std::int64_t> places);
  Places made(std::span<const std::int64_t> rows);
  Places made_to_restore(std::span<const std::int64_t> rows, std::uint32_t slots);
  template <typename Make>
  Places grown_by(Make make);
  void before_write(std::span<const std::int64_t> places);
  void before_write_all();

  std::pair<std::ptrdiff_t, std::ptrdiff_t> offsets_of_part(
      const storage::StoredRows& stored) const;
  void before_change(std::span<const std::int64_t> places);
  // Rows have changed: at these places, or all.
  void tell_changed(std::span<const std::int64_t> places);
  void tell_all_changed();
  // Rows have left these places.
  void tell_left(std::span<const std::int64_t> places, std::span<const std::int64_t> rows,
                 TableChanges::To to);
  void tell_begins();

  RowMemory memory_;
  CopyPool& pool_;
  // There is one if the variable does not keep all rows.
  std::unique_ptr<RowTurnover> turnover_;
  std::unique_ptr<TableTier> tier_;
  std::unique_ptr<storage::ColdCut> cold_;  // of what is frozen
  Snapshot snapshot_;
  Lending lending_;
  // There are these if rows leave their places, for good or for the disk; without a tier also which
  // places have a row, a bit each.
  std::unique_ptr<Departures> departures_;
  std::vector<std::uint64_t> taken_places_;
  std::uint64_t gone_count_ = 0;
  std::optional<storage::SeenRows> seen_;  // of what is frozen
  bool whole_in_delta_ = false;
  std::optional<TouchedRows> stale_;  // touched before the restore that is under way
  std::uint64_t written_ = 1;
  std::vector<std::pair<std::uint64_t, std::unique_ptr<TableChanges>>> followers_;
};

}  // namespace cairn::ps
