// Checkpoints of one process's variables, in the format of all others: what is saved here restores
// under parameter servers, and the other way round. docs/checkpoint-format.md has the format.
//   Thread  the runtime's user, who waits for the disk.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/engine_options.h"
#include "coordinator/cluster/restore_status.h"
#include "coordinator/progress/pipelines.h"
#include "core/disk/disk.h"
#include "core/exec/local_runtime.h"
#include "storage/row_store.h"

namespace cairn {

struct LocalPlace {
  Disk& disk;
  std::shared_ptr<storage::RowStore> store;
  static LocalPlace of_this_machine();
};

// How far a program has come.
struct LocalProgress {
  std::int64_t global_step = 0;
  std::vector<PipelinePosition> positions;  // in its data
};

// All variables with their slots, and the progress; the folder of the checkpoint.
//   Errors  InvalidArgument: no folder, deltas are asked for (full_every), or metadata that is no
//           JSON. The disk's.
std::string save_local(LocalRuntime& runtime, const LocalPlace& place,
                       const CheckpointPolicy& policy, const std::string& metadata,
                       const LocalProgress& progress);

struct LocalRestore {
  RestoreStatus status;
  LocalProgress progress;
};
// Variables that are made later take their rows when they are made.
//   Errors  NotFound, DataLoss: the checkpoint is not there, or damaged. InvalidArgument: the
//           options do not suit it, see RestorePlan. FailedPrecondition: another dtype, shape or
//           seed, naming every variable. Those of `choose`, which is given the positions, and
//           leaves those to go on from. Then nothing has changed.
LocalRestore restore_local(LocalRuntime& runtime, const LocalPlace& place,
                           const std::string& checkpoint, const RestoreOptions& options = {},
                           const std::function<void(std::vector<PipelinePosition>&)>& choose = {});

}  // namespace cairn
