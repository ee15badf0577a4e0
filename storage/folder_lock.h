// The right to save checkpoints into a folder, which one run has at a time: two would use the same
// numbers, and each would remove what the other keeps.
#pragma once
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/disk/disk.h"

namespace cairn::storage {

inline constexpr const char* kLockFile = "LOCK";

// Held as long as this lives; a killed process releases it too.
struct FolderLock {
  std::string folder;
  std::unique_ptr<DiskLock> lock;
};

// Locks `folder`, which is made if it is missing, and removes what a killed holder was making of a
// chain (consolidation.h). Waits up to `patience` for a holder that is about
// to end.
//   Errors  FailedPrecondition: another run saves there; names that run and since when. The disk's
//           own.
//   Thread  any that may block.
std::shared_ptr<const FolderLock> lock_folder(Disk& disk, const std::string& folder,
                                              const Clock& clock, Duration patience);

}  // namespace cairn::storage
