// Consolidation: the full databases that a chain of deltas amounts to, made beside a training that
// saves into the same folder. The ps have no part in it.
//
// It reads links of its own, in a folder "ckpt-00000042.consolidating" beside the checkpoint, and
// writes there, so that checkpoints may be removed meanwhile. The new databases take the place of
// the old ones by one replacement of a manifest: a crash before it leaves the chain as it was, one
// after it a checkpoint that no longer needs it. The old databases stay in the checkpoint's folder,
// as a ps may be reading them; CheckpointFolder::prune() removes them. What a crash leaves beside
// is removed by lock_folder().
//   Thread  one at a time; calls block on the disk.
//   Cost    a block of each database in memory.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/disk/disk.h"
#include "storage/checkpoint_writer.h"
#include "storage/manifest.h"
#include "storage/merged_rows.h"
#include "storage/row_store.h"

namespace cairn::storage {

class Consolidation {
 public:
  // Begins with the checkpoint at `path`. `disk` has links, and outlives this.
  //   Errors  NotFound, DataLoss: a file is missing or damaged. Unimplemented: its rows would lose
  //           by being written again (int8), or have no slots. The disk's.
  Consolidation(Disk& disk, std::shared_ptr<RowStore> store, std::string path);
  // Removes the folder beside the checkpoint.
  ~Consolidation();
  Consolidation(const Consolidation&) = delete;
  Consolidation& operator=(const Consolidation&) = delete;

  // Writes some megabytes; false: all is written.
  //   Errors  DataLoss: a block is damaged. Unimplemented: an earlier release saved the blocks in
  //           another order. The disk's.
  bool step();
  // Has the checkpoint at `path`, which is the one above or a delta that goes back to it, hold the
  // new databases in place of those that they were made of. No save or prune may be under way.
  //   Result  its manifest; empty: it does not go back to that checkpoint, and nothing has changed.
  std::optional<Manifest> put_into(const std::string& path);

 private:
  void link_all();
  void open_all();
  void finish();

  Disk& disk_;
  std::shared_ptr<RowStore> store_;
  std::string path_, beside_;
  Manifest source_;
  std::vector<VariableInfo> variables_;  // in_key_order(); those before `next_` are written
  std::size_t next_ = 0;
  std::vector<std::unique_ptr<DatabaseReader>> readers_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::optional<MergedRows> rows_;  // of the variable that is being written
  RowBatch batch_;
  std::vector<DatabaseInfo> made_;
};

// Whether a folder of this name is that of a consolidation, under way or killed.
bool is_consolidation(const std::string& name);

}  // namespace cairn::storage
