#include "tools/job/train/checkpoint_path.h"

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "tools/launch/run_folder.h"

namespace cairn::tools {
namespace {

// A user may name any of the three; the more particular meaning comes first.
std::vector<std::string> look_for_checkpoints(const std::string& path) {
  if (storage::any_disk().exists(path + "/" + storage::kManifestFile)) return {path};
  std::vector<std::string> found;
  for (const std::string& folder : {path, path + "/checkpoints"})
    if (found.empty())
      for (const auto& entry : storage::CheckpointFolder(storage::any_disk(), folder).list())
        found.push_back(entry.path);
  return found;
}

}  // namespace

std::vector<std::string> checkpoints_at(const std::string& path) {
  auto found = look_for_checkpoints(path);
  if (found.empty())
    throw NotFoundError(
        str("there is no checkpoint at ", path, ": neither a ", storage::kManifestFile,
            " nor folders ckpt-NNNNNNNN with one, there or in its folder checkpoints"));
  return found;
}

std::string checkpoint_at(const std::string& path) { return checkpoints_at(path).back(); }

// The newest run that has a checkpoint, and not the newest run: one that was just begun, or failed
// at once, has none, and is not what --resume latest means.
std::string latest_checkpoint() {
  const std::string run =
      newest_run([](const std::string& folder) { return !look_for_checkpoints(folder).empty(); });
  if (run.empty())
    throw NotFoundError(
        "there is no run with a checkpoint below ./runs: name a checkpoint, or the run's folder "
        "with --dir");
  return checkpoint_at(run);
}

}  // namespace cairn::tools
