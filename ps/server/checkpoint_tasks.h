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

struct SavedDatabase {
  std::vector<storage::FileInfo> files;  // named relative to `folder`: "<database>/<file>"
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};
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

// The same, but the shard may be opened as soon as this ends, which is when the tables' records are
// read: rows come when requests want them, and the others by and by (OnDemandRestore). That goes on
// whatever becomes of the connection; await_restore() tells when it has ended. Where rows cannot be
// found one by one all are restored first, as above, and the log says why: the shard has a memory
// limit, rows get other numbers, a variable does not keep every row, or the blocks of an earlier
// release overlap.
rpc::Task<RestoredRows> restore_on_demand(std::shared_ptr<ShardHost> host, std::string folder,
                                          std::vector<std::string> databases, AppliedSet applied,
                                          std::vector<VariableId> only = {}, RowMoves moves = {});
// Ends when all rows are there that restores on demand have left to come.
//   Errors  the store's: rows do not come any more, and all has to be restored again.
rpc::Task<void> await_restore(std::shared_ptr<ShardHost> host);

}  // namespace cairn::ps
