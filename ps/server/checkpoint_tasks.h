// Saving and restoring one shard: the shard's thread hands over or takes in a batch at a time, and
// another thread reads and writes the disk.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/rows/row_move.h"
#include "ps/shard/shard.h"
#include "rpc/loop/task.h"
#include "storage/row_encoding.h"
#include "storage/row_store.h"

namespace cairn::ps {

struct ShardHost;

// Writes the state that was marked in `attempt` to the database folder/<host->database>, and rows
// of tables that have some on a disk to others beside it (SortedRuns), while pulls and pushes go on
// between the batches. Drops the mark, whatever happens. At most three batches of about 1 MB are in
// memory, and one run.
//   Errors  FailedPrecondition: not marked, or being saved; Cancelled: the mark was dropped
//           meanwhile; the store's.
rpc::Task<std::vector<SavedDatabase>> save_shard(std::shared_ptr<ShardHost> host,
                                                 std::uint64_t attempt, std::string folder,
                                                 storage::ChosenEncoding encoding = {});

using RowMoves = std::map<std::string, RowMove>;  // by the variable here
struct RestoredRows {
  RestoreReport report;
  std::uint64_t bytes = 0;       // of rows with their slots
  std::uint64_t read_bytes = 0;  // asked of the disk
  bool later = false;            // the rows are still to come, and none is counted
};
// Loads this shard's rows (of the variables `only`, if any are named) from the databases, later
// ones over earlier ones, each variable by its move, or by its name if it has none. The shard is
// closed from the start on; open() it afterwards. After an error it stays closed and has to be
// restored again: never half a model. At most two batches of about 2 MB are in memory: one is read,
// and its checksums verified, while the one before is put into the tables.
//   Errors  Cancelled: another restore, session or connection of the coordinator has begun;
//           FailedPrecondition: see Shard::restore(); the store's and RangeRead's.
rpc::Task<RestoredRows> restore_shard(std::shared_ptr<ShardHost> host, std::string folder,
                                      std::vector<std::string> databases, AppliedSet applied,
                                      std::vector<VariableId> only = {}, RowMoves moves = {});

// The same, but ends when only the tables' records have been read, and the shard may be opened. The
// rows that requests want are read first, and all others besides (OnDemandRestore). Reading goes on
// even if the coordinator's connection breaks; await_restore() waits for its end.
// If single rows cannot be found, all are restored before this ends, as by restore_shard(), and the
// log says why: the shard has a memory limit, rows get other numbers, a variable does not keep all
// rows, or an earlier release saved blocks that overlap.
rpc::Task<RestoredRows> restore_on_demand(std::shared_ptr<ShardHost> host, std::string folder,
                                          std::vector<std::string> databases, AppliedSet applied,
                                          std::vector<VariableId> only = {}, RowMoves moves = {});
// For each of these databases why it is not on this machine; empty: it is.
rpc::Task<std::vector<std::string>> find_databases(std::shared_ptr<ShardHost> host,
                                                   std::vector<std::string> databases);
// Removes folders of rows.   Errors  the store's, of the first that could not be removed.
rpc::Task<void> remove_rows(std::shared_ptr<ShardHost> host, std::vector<std::string> folders);

// Waits until restores on demand have brought all of their rows; ends at once if none is under way.
//   Errors  the store's: the missing rows will not come, and everything has to be restored again.
rpc::Task<void> await_restore(std::shared_ptr<ShardHost> host);

}  // namespace cairn::ps
