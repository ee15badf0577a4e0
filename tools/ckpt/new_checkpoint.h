// Where a tool writes a checkpoint of its own, and how its rows come there.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/disk/disk.h"
#include "storage/folder_lock.h"
#include "storage/manifest.h"
#include "tools/ckpt/opened_checkpoint.h"
#include "tools/ckpt/support.h"

namespace cairn::tools::ckpt {

// A folder for a new checkpoint: the one that the user named, or the next of those beside the
// checkpoint at `source`, which must then be the newest, since the new one will be. Unless
// commit() was called, it is removed again.
//   Errors  AlreadyExists: there is something in the folder. FailedPrecondition: a run saves beside
//           the source, or the source is not the newest; says that --out helps. InvalidArgument:
//           the source is in a bucket, and no folder is named.
class NewCheckpoint {
 public:
  NewCheckpoint(const std::string& source, const std::string& out);
  ~NewCheckpoint();
  NewCheckpoint(const NewCheckpoint&) = delete;
  NewCheckpoint& operator=(const NewCheckpoint&) = delete;
  const std::string& path() const { return path_; }
  // Its manifest is written last, as a save does.
  //   Errors  Unimplemented: it is in a bucket whose store cannot tell whether there is one.
  void commit(storage::Manifest manifest, Disk::SingleWriter single);

 private:
  std::string path_;
  std::uint64_t id_ = 0;  // 0: that of the source
  bool committed_ = false;
  std::shared_ptr<const storage::FolderLock> lock_;
};

// The right to change a folder of checkpoints.
//   Errors  FailedPrecondition: a run holds it; ends with `cure`.
std::shared_ptr<const storage::FolderLock> hold_folder(const std::string& folder,
                                                       const std::string& cure);

// Writes all rows of `checkpoint` into databases `names` of `folder`, and puts these and the
// variables' parts into `manifest`.
void rewrite(const OpenedCheckpoint& checkpoint, const std::string& folder,
             std::vector<std::string> names, storage::Manifest& manifest);

}  // namespace cairn::tools::ckpt
