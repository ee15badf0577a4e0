#include "tools/job/train/checkpoint_claim.h"

#include <cstdio>
#include <filesystem>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"

namespace cairn::tools {
namespace {

// Compared as files and not as text: the same folder may be named by another path, or through a
// link.
bool lies_in(const std::string& checkpoint, const std::string& folder) {
  const std::string place = storage::absolute_place(checkpoint);
  if (place.starts_with("s3://")) return folder_of(place) == storage::absolute_place(folder);
  std::error_code none;
  auto at = std::filesystem::absolute(checkpoint).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();  // it was given with a slash at its end
  return std::filesystem::equivalent(at.parent_path(), folder, none);
}

}  // namespace

std::shared_ptr<const storage::FolderLock> claim_checkpoint_folder(
    Disk& disk, const std::string& folder, const std::string& resume, Overwrite overwrite,
    Duration patience, RunOutput& output) {
  // Locked first and looked at afterwards, so that no other run can save between the two.
  auto lock = storage::lock_folder(disk, folder, system_clock(), patience);
  const auto there = storage::CheckpointFolder(disk, folder).list();
  if (there.empty() || (!resume.empty() && lies_in(resume, folder))) return lock;
  const std::string newest = storage::CheckpointFolder::name(there.back().id);
  if (overwrite == Overwrite::kNo)
    throw AlreadyExistsError(
        str(folder, " holds ", there.size(), there.size() == 1 ? " checkpoint" : " checkpoints",
            " of another run (the newest is ", newest,
            "): go on from it with --resume latest, name "
            "another folder with --checkpoints, or save beside them with --overwrite"));
  output.say(str(folder, ": ", there.size(), " of another run ",
                 there.size() == 1 ? "is there and stays" : "are there and stay",
                 "; this run saves after ", newest));
  return lock;
}

}  // namespace cairn::tools
