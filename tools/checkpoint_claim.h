// The claim of a run to a folder for its checkpoints, made before anything else is done.
#pragma once
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/disk.h"
#include "storage/folder_lock.h"
#include "tools/user_files.h"

namespace cairn::tools {

// Locks the folder. `resume`: the checkpoint that the run goes on from; empty: it begins anew.
//   Errors  AlreadyExists: it holds checkpoints of a run that this one does not go on from;
//           FailedPrecondition: another run saves there now; the disk's: it cannot be made or
//           written to.
std::shared_ptr<const storage::FolderLock> claim_checkpoint_folder(Disk& disk,
                                                                   const std::string& folder,
                                                                   const std::string& resume,
                                                                   Overwrite overwrite,
                                                                   Duration patience);

}  // namespace cairn::tools
