// The claim of a run to a folder for its checkpoints, made before anything else is done: a run that
// may not save is not begun, and its numbers cannot collide with another run's.
#pragma once
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/disk/disk.h"
#include "storage/folder_lock.h"
#include "tools/job/run/run_output.h"
#include "tools/job/train/user_files.h"

namespace cairn::tools {

// Locks the folder for as long as the result lives. `resume` is the checkpoint that the run goes on
// from; empty: it begins anew. Says so if checkpoints of another run stay there.
//   Errors  AlreadyExists: it holds checkpoints of a run that this one does not go on from.
//           FailedPrecondition: another run saves there now. The disk's: it cannot be made or
//           written to.
std::shared_ptr<const storage::FolderLock> claim_checkpoint_folder(
    Disk& disk, const std::string& folder, const std::string& resume, Overwrite overwrite,
    Duration patience, RunOutput& output);

}  // namespace cairn::tools
