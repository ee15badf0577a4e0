#include "storage/folder_lock.h"

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/utc.h"
#include "storage/consolidation.h"

namespace cairn::storage {
namespace {

// A holder that was killed while it made a chain of deltas full has left a folder.
void remove_leftovers(Disk& disk, const std::string& folder) {
  if (!disk.has_links(folder)) return;
  for (const std::string& name : disk.list(folder))
    if (is_consolidation(name)) disk.remove_tree(folder + "/" + name);
}

}  // namespace

// The holder writes its own name after it has locked, so the file may still be empty when another
// process reads it.
std::shared_ptr<const FolderLock> lock_folder(Disk& disk, const std::string& folder,
                                              const Clock& clock, Duration patience) {
  disk.make_folder(folder);
  const std::string holder = str(process_text(), " since ", utc_text(clock.wall_microseconds()));
  try {
    auto lock = disk.lock(folder + "/" + kLockFile, holder, patience);
    remove_leftovers(disk, folder);
    return std::make_shared<const FolderLock>(FolderLock{folder, std::move(lock)});
  } catch (const FailedPreconditionError& taken) {
    const std::string whom =
        *taken.what() == '\0' ? "a process that has not written its name yet" : taken.what();
    throw FailedPreconditionError(
        str("another run saves its checkpoints in ", folder, " (", whom,
            "), and two would share numbers: wait for its end, or give this run another folder"));
  }
}

}  // namespace cairn::storage
