// TieredRows: the RowSource of a shard whose hashed tables have rows on a disk, too: it brings the
// rows that requests wait for, and has others leave when memory is short (TableTier).
#pragma once
#include <cstddef>
#include <exception>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "ps/shard/row_source.h"
#include "ps/tier/table_tier.h"

namespace cairn::ps {

struct TieringOptions {
  // Memory for all tables of the shard; 0: as much as they take, and no row is elsewhere.
  std::size_t memory_bytes = 0;
  storage::MakeColdStore make_store;
  // A table has room for so many rows in any case.
  std::int64_t rows_min = 64;
};

// Thread: the shard's own.
class TieredRows final : public RowSource {
 public:
  explicit TieredRows(TieringOptions options);

  // Tables are to be made with it.
  const TableTier::Shared* shared() const { return &shared_; }
  // Tables that have all of their rows in memory take so much of it.
  void set_other_bytes(std::size_t bytes);

  void find_elsewhere(const WantedRows& wanted, Access access,
                      std::vector<std::int64_t>& elsewhere) override;
  void fetch(Table& table, const std::vector<std::int64_t>& rows, Fetched fetched) override;
  void reset(Table& table) override;
  Moment moment() const override { return moment_; }
  void settle(Moment oldest) override;

  // Rows of the table have come in another way than by fetch().
  void note(Table& table) { used_.insert(&table); }
  // Before rows are put over what there is of them, each ascending once: brings those that may be
  // in the store. `done` is called once, later. False: there are none.
  using Brought = std::function<void(std::exception_ptr error)>;
  bool bring(Table& table, std::span<const std::int64_t> rows, Brought done);

  // Rows should leave and cannot, as the store, or the pool for copies of a save, has no room yet:
  // no rows may come. See settle().
  bool crowded() const { return crowded_; }
  const TierCounters& counters() const { return counters_; }

 private:
  void bring_in(Table& table, const std::vector<std::int64_t>& rows, Brought done);
  bool make_room(Table& table, Moment before);

  TieringOptions options_;
  TierCounters counters_;
  MemoryBudget budget_;
  TableTier::Shared shared_;
  Moment moment_ = 1;
  std::set<Table*> used_;  // since the last settle(), or whose rows could not leave
  bool crowded_ = false;
  bool full_ = false;  // the disk is, and it was said
};

}  // namespace cairn::ps
