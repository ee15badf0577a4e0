// reshard, merge and consolidate: all rows of a checkpoint, written anew.
#include <cstdio>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "storage/manifest.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/new_checkpoint.h"
#include "tools/ckpt/opened_checkpoint.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools::ckpt {
namespace {

std::uint64_t rows_of(const storage::Manifest& manifest) {
  std::uint64_t rows = 0;
  for (const auto& database : manifest.databases) rows += database.rows;
  return rows;
}

void tell(const std::string& from, const std::string& to, const storage::Manifest& manifest,
          Form form) {
  if (form == Form::kJson)
    print_json({{"source", from},
                {"path", to},
                {"databases", manifest.databases.size()},
                {"rows", rows_of(manifest)}});
  else
    std::printf("%s: %zu databases, %llu rows, made of %s\n", to.c_str(), manifest.databases.size(),
                static_cast<unsigned long long>(rows_of(manifest)), from.c_str());
}

// Names that no database of the checkpoint has.
std::vector<std::string> new_names(const std::string& path, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; names.size() < count; ++i)
    if (std::string name = str("full-", i); !system_disk().exists(path + "/" + name))
      names.push_back(std::move(name));
  return names;
}

}  // namespace

int reshard(const RewriteRequest& request) {
  const OpenedCheckpoint checkpoint(checkpoint_at(request.path),
                                    storage::DatabaseFolders(request.folders));
  storage::Manifest manifest = checkpoint.manifest();
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < request.shards; ++i) names.push_back(str("shard-", i));
  NewCheckpoint made(checkpoint.path(), request.out);
  rewrite(checkpoint, made.path(), names, manifest);
  manifest.base.clear();
  made.commit(manifest, request.single);
  tell(checkpoint.path(), made.path(), manifest, request.form);
  return kFine;
}

// The new databases are complete before the manifest names them, and the old ones go after it no
// longer does: at every moment the checkpoint is whole. What a crash leaves is not in the manifest.
int consolidate(const std::string& path, Form form) {
  const OpenedCheckpoint checkpoint(checkpoint_at(path));
  const std::string& at = checkpoint.path();
  if (!storage::any_disk().has_links(at))
    throw InvalidArgumentError(str(at,
                                   " is in a bucket, where a training that needs its rows "
                                   "cannot be seen: make a full one elsewhere by `cairn ckpt "
                                   "reshard` with --out"));
  storage::Manifest manifest = checkpoint.manifest();
  for (const auto& database : manifest.databases)
    if (storage::is_local(database.name))
      throw InvalidArgumentError(str(at,
                                     " has rows in local folders of the ps, where they are not to "
                                     "be changed from here: gather it with `cairn ckpt copy`, or "
                                     "make a full one elsewhere by `cairn ckpt reshard` with "
                                     "--out"));
  if (manifest.base.empty()) {
    tell(at, at, manifest, form);
    return kFine;
  }
  const auto lock =
      hold_folder(folder_of(at), "Or make a full one elsewhere: `cairn ckpt reshard` with --out");
  std::size_t own = 0;
  for (const auto& database : manifest.databases)
    own += database.name.find('.') == std::string::npos ? 1 : 0;
  std::vector<std::string> names = new_names(at, std::max<std::size_t>(own, 1));
  try {
    rewrite(checkpoint, at, names, manifest);
  } catch (...) {
    for (const std::string& name : names) system_disk().remove_tree(at + "/" + name);
    throw;
  }
  manifest.base.clear();
  storage::commit(system_disk(), at, manifest);
  for (const auto& database : checkpoint.manifest().databases)
    system_disk().remove_tree(at + "/" + database.name);
  tell(at, at, manifest, form);
  return kFine;
}

}  // namespace cairn::tools::ckpt
