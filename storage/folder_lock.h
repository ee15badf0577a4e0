// The right to save checkpoints into a folder, which one run has at a time: two would share
// numbers.
#pragma once
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/disk.h"

namespace cairn::storage {

inline constexpr const char* kLockFile = "LOCK";

struct FolderLock {
  std::string folder;
  std::unique_ptr<DiskLock> lock;
};

// Makes the folder if need be. Waits up to `patience` for a holder that is about to end.
//   Errors  FailedPrecondition: another run saves there, who and since when; the disk's own.
//   Thread  any that may block.
std::shared_ptr<const FolderLock> lock_folder(Disk& disk, const std::string& folder,
                                              const Clock& clock, Duration patience);

}  // namespace cairn::storage
