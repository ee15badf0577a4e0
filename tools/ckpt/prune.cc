// prune: removes old checkpoints, and never one that a running training may still need.
//
// A checkpoint needs no other one, deltas neither: they have links to the files that they share. So
// the question is only what a training reads again. It reads the checkpoint that it begins with,
// and after a loss the newest of its own; the next delta links the files of the newest. A training
// holds the folder's lock from before it reads anything. So while the lock is taken, the newest of
// each session stays, and what the newest one's session was resumed from; and if the holder has not
// saved yet, everything does, since it may be reading any of them.
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>
#include <set>

#include "coordinator/checkpoint/local_rows.h"
#include "core/base/clock.h"
#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/database_place.h"
#include "storage/folder_lock.h"
#include "storage/manifest.h"
#include "tools/ckpt/commands.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools::ckpt {
namespace {

constexpr const char* kUnfinishedIs =
    ". --unfinished removes what no checkpoint is made of, and a running save is just that: try "
    "again once that run has ended";

struct Known {
  std::uint64_t id = 0;
  std::string path;
  std::optional<storage::Manifest> manifest;  // empty: it cannot be read
  std::string stays;                          // why; empty: it goes
};

std::string folder_of_checkpoints(const std::string& path) {
  const std::vector<std::string> found = checkpoints_at(path);
  if (found.size() == 1 && found[0] == path)
    throw InvalidArgumentError(
        str(path, " is a checkpoint: name the folder of checkpoints that some are to go of"));
  return folder_of(found[0]);
}

std::vector<Known> read_folder(const std::string& folder) {
  std::vector<Known> all;
  for (const auto& entry : storage::CheckpointFolder(storage::any_disk(), folder).list()) {
    Known known{entry.id, entry.path, std::nullopt, ""};
    try {
      known.manifest = storage::read_manifest(storage::any_disk(), entry.path);
    } catch (const NotFoundError&) {
      continue;  // a training has removed it meanwhile
    } catch (const Error&) {
      known.stays = "its manifest cannot be read";
    }
    all.push_back(std::move(known));
  }
  return all;
}

// Since when the lock is held, in seconds since 1970, by what its holder wrote into it; empty: it
// says nothing.
std::optional<std::int64_t> held_since(const std::string& text) {
  const std::size_t at = text.rfind(" since ");
  std::tm parts{};
  if (at == std::string::npos ||
      ::strptime(text.c_str() + at + 7, "%Y-%m-%d %H:%M:%S", &parts) == nullptr)
    return std::nullopt;
  return ::timegm(&parts);
}

void keep(Known& known, const std::string& why) {
  if (known.stays.empty()) known.stays = why;
}

// A training that holds the lock and has not saved may be restoring any of them. A bucket has no
// lock to tell of it.
void verify_has_saved(const storage::Manifest& newest, const std::string& folder) {
  if (!storage::any_disk().has_links(folder)) return;
  const std::string holder = storage::any_disk().read(folder + "/" + storage::kLockFile);
  const auto since = held_since(holder);
  if (!since.has_value() || newest.saved_at_us / 1'000'000 <= *since)
    throw FailedPreconditionError(
        str("a training holds ", folder, " (", holder,
            ") and has not saved there yet: it may be restoring any of these checkpoints. Nothing "
            "was removed; try again after its first save"));
}

// Marks what a training that saves there may need.
void keep_for_training(std::vector<Known>& all, const std::string& folder) {
  const storage::Manifest* newest = nullptr;
  for (const Known& known : all)
    if (known.manifest.has_value()) newest = &*known.manifest;
  if (newest == nullptr) return;
  verify_has_saved(*newest, folder);
  std::set<std::uint64_t> seen;
  for (auto known = all.rbegin(); known != all.rend(); ++known)
    if (known->manifest.has_value() && seen.insert(known->manifest->session).second)
      keep(*known, "the newest of a session, while a training saves here");
  if (newest->ancestors.empty()) return;
  for (Known& known : all)
    if (known.id == newest->ancestors.back().checkpoint)
      keep(known, "what the running training was resumed from");
}

void choose(std::vector<Known>& all, const PruneRequest& request) {
  if (request.keep_last == 0 && request.keep_every == 0)
    for (Known& known : all) keep(known, "--unfinished alone");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t newer = all.size() - 1 - i;
    if (newer == 0) keep(all[i], "the newest");
    if (newer < request.keep_last) keep(all[i], "--keep-last");
    if (request.keep_every != 0 && all[i].id % request.keep_every == 0)
      keep(all[i], "--keep-every");
  }
}

// The manifest goes first: without it the folder is no checkpoint.
void remove(const Known& known) {
  storage::any_disk().remove(known.path + "/" + storage::kManifestFile);
  storage::any_disk().remove_tree(known.path);
}

void note_rows_of(const Known& known, std::set<std::string>& names) {
  if (!known.manifest.has_value()) return;
  for (const auto& database : known.manifest->databases)
    if (const std::string rows = storage::rows_folder_of(database.name);
        !rows.empty() && !storage::is_local(database.name))
      names.insert(rows);
}

// Paths beside the checkpoints that are to go with those that go: in a bucket their rows, where no
// other one names them; and if `unfinished` asks for it, all that is part of no checkpoint.
std::vector<std::string> leftovers(const std::vector<Known>& all, const std::string& folder,
                                   bool unfinished) {
  std::set<std::string> named, unnamed;
  for (const Known& known : all) note_rows_of(known, known.stays.empty() ? unnamed : named);
  if (unfinished)
    for (const std::string& name : storage::any_disk().list(folder)) {
      const bool checkpoint = storage::CheckpointFolder::parse_name(name).has_value();
      if (checkpoint ? !is_checkpoint(folder + "/" + name)
                     : !storage::rows_folder_of("../" + name + "/x").empty())
        unnamed.insert(name);
    }
  std::vector<std::string> paths;
  for (const std::string& name : unnamed)
    if (!named.contains(name)) paths.push_back(folder + "/" + name);
  return paths;
}

// Folders in local folders of the ps that are to go, by the same rule.
std::vector<LocalRows> local_leftovers(const std::vector<Known>& all, const std::string& folder,
                                       bool unfinished) {
  std::set<std::string> named;
  std::map<std::string, std::string> unnamed;  // to whose they are
  for (const Known& known : all) {
    if (!known.manifest.has_value()) return {};  // it might name any of them
    for (const auto& database : known.manifest->databases) {
      const std::string rows = storage::local_rows_of(database.name);
      if (rows.empty()) continue;
      if (known.stays.empty())
        unnamed.emplace(rows, database.task);
      else
        named.insert(rows);
    }
  }
  if (unfinished)
    for (const LocalRows& rows : unnamed_local_rows(storage::any_disk(), folder))
      unnamed.emplace(rows.path, rows.task);
  std::vector<LocalRows> gone;
  for (const auto& [rows, task] : unnamed)
    if (!named.contains(rows)) gone.push_back({task, rows});
  return gone;
}

// In a bucket a manifest that cannot be read might name any rows.
void verify_readable(const std::vector<Known>& all, const std::string& folder) {
  if (storage::any_disk().has_links(folder)) return;
  for (const Known& known : all)
    if (!known.manifest.has_value())
      throw FailedPreconditionError(str("nothing is removed in ", folder, ": the manifest of ",
                                        known.path,
                                        " cannot be read, and might name any rows there"));
}

class Removal {
 public:
  explicit Removal(const PruneRequest& request) : request_(request) {}

  void take(const Known& known) {
    const bool goes = known.stays.empty();
    if (goes && !request_.dry_run) remove(known);
    if (goes) return tell(known.path, removed_);
    kept_.push_back({{"path", known.path}, {"why", known.stays}});
    if (request_.form == Form::kText)
      std::printf("kept %s: %s\n", known.path.c_str(), known.stays.c_str());
  }
  void take_leftover(const std::string& path) {
    if (!request_.dry_run) storage::any_disk().remove_tree(path);
    tell(path, leftovers_);
  }
  // Rows of a ps's machine go if they are seen from here, and else at the next save of a run there,
  // by the list that only a holder of the lock may change.
  void take_local(const LocalRows& rows, const storage::DatabaseFolders& folders,
                  const std::string& folder, bool locked) {
    const std::string path = folders.local_rows(rows.task, rows.path);
    if (storage::any_disk().list(path).empty()) {
      elsewhere_.push_back({{"task", rows.task}, {"path", rows.path}});
      if (request_.form == Form::kText)
        std::printf("left %s on the machine of %s: the next save into this folder removes it\n",
                    rows.path.c_str(), rows.task.c_str());
      return;
    }
    take_leftover(path);
    if (locked && !request_.dry_run) forget_local_rows(storage::any_disk(), folder, {rows});
  }
  void take_uploads(const std::string& folder) {
    if (request_.dry_run || !request_.unfinished) return;
    uploads_ = storage::any_disk().remove_unfinished(folder + "/");
    if (request_.form == Form::kText && uploads_ > 0)
      std::printf("gave up %zu uploads that were never completed\n", uploads_);
  }
  void end() const {
    if (request_.form == Form::kJson)
      print_json({{"dry_run", request_.dry_run},
                  {"removed", removed_},
                  {"kept", kept_},
                  {"leftovers", leftovers_},
                  {"elsewhere", elsewhere_},
                  {"uploads", uploads_}});
  }

 private:
  void tell(const std::string& path, Json& list) const {
    list.push_back({{"path", path}, {"why", ""}});
    if (request_.form == Form::kText)
      std::printf("%s %s\n", request_.dry_run ? "would remove" : "removed", path.c_str());
  }

  const PruneRequest& request_;
  Json removed_ = Json::array(), kept_ = Json::array(), leftovers_ = Json::array();
  Json elsewhere_ = Json::array();
  std::size_t uploads_ = 0;
};

}  // namespace

int prune(const PruneRequest& request) {
  if (request.keep_last == 0 && request.keep_every == 0 && !request.unfinished)
    throw InvalidArgumentError(
        "say what is to stay: --keep-last N, --keep-every N, or both; or what is to go: "
        "--unfinished");
  const std::string folder = folder_of_checkpoints(request.folder);
  // Held until the end, so that no training begins to read meanwhile.
  std::shared_ptr<const storage::FolderLock> lock;
  try {
    lock = storage::lock_folder(storage::any_disk(), folder, system_clock(), Duration::zero());
  } catch (const FailedPreconditionError& taken) {
    if (request.unfinished) throw FailedPreconditionError(str(taken.what(), kUnfinishedIs));
  }
  std::vector<Known> all = read_folder(folder);
  verify_readable(all, folder);
  if (lock == nullptr || !storage::any_disk().has_links(folder)) keep_for_training(all, folder);
  choose(all, request);
  const storage::DatabaseFolders folders(request.folders);
  const std::vector<LocalRows> local = local_leftovers(all, folder, request.unfinished);
  Removal removal(request);
  for (const Known& known : all) removal.take(known);
  for (const LocalRows& rows : local) removal.take_local(rows, folders, folder, lock != nullptr);
  for (const std::string& path : leftovers(all, folder, request.unfinished))
    removal.take_leftover(path);
  removal.take_uploads(folder);
  removal.end();
  return kFine;
}

}  // namespace cairn::tools::ckpt
