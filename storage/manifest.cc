#include "storage/manifest.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/utc.h"

namespace cairn::storage {

Manifest read_manifest(const Disk& disk, const std::string& folder) {
  const std::string path = folder + "/" + kManifestFile;
  if (!disk.exists(path))
    throw NotFoundError(str("there is no checkpoint in ", folder, ": its manifest ", path,
                            " is missing. Name a folder that `cairn ckpt ls` lists; one without a "
                            "manifest was never completed"));
  return parse_manifest(disk.read(path), path);
}

// Everything that the manifest names must be on the disk and synced before this: a manifest is a
// promise. The writers of databases have synced their files, and the coordinator calls this when
// all of them have answered.
void commit(Disk& disk, const std::string& folder, const Manifest& manifest) {
  disk.write_atomically(folder + "/" + kManifestFile, to_text(manifest));
}

void commit_new(Disk& disk, const std::string& folder, const Manifest& manifest,
                Disk::SingleWriter single) {
  disk.make_folder(folder);  // rows may lie elsewhere
  try {
    disk.write_new(folder + "/" + kManifestFile, to_text(manifest), single);
  } catch (const AlreadyExistsError&) {
    const Manifest other = read_manifest(disk, folder);
    throw FailedPreconditionError(str("another run has saved ", folder,
                                      " meanwhile: its session is ", other.session, ", this one's ",
                                      manifest.session, "; it was at step ", other.global_step,
                                      " at ", utc_text(other.saved_at_us),
                                      ". What this run was about to save there is given up: end "
                                      "one of the two, or give it a folder of its own"));
  }
}

std::vector<DatabaseInfo> group_by_database(const std::vector<FileInfo>& files) {
  std::vector<DatabaseInfo> databases;
  for (const FileInfo& file : files) {
    const std::string name = file.name.substr(0, file.name.find('/'));
    auto at = std::find_if(databases.begin(), databases.end(),
                           [&](const DatabaseInfo& one) { return one.name == name; });
    if (at == databases.end()) at = databases.insert(at, DatabaseInfo{.name = name});
    at->files.push_back(file);
    at->bytes += file.bytes;
  }
  return databases;
}

}  // namespace cairn::storage
