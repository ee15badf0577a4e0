#include "tools/ckpt/new_checkpoint.h"

#include <algorithm>
#include <utility>

#include "core/base/clock.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/checkpoint_writer.h"

namespace cairn::tools::ckpt {
namespace {

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::shared_ptr<const storage::FolderLock> hold_folder(const std::string& folder,
                                                       const std::string& cure) {
  try {
    return storage::lock_folder(storage::any_disk(), folder, system_clock(), Duration::zero());
  } catch (const FailedPreconditionError& taken) {
    throw FailedPreconditionError(str(taken.what(), ". ", cure));
  }
}

NewCheckpoint::NewCheckpoint(const std::string& source, const std::string& out) : path_(out) {
  if (!out.empty()) {
    if (!storage::any_disk().list(out).empty() || storage::any_disk().exists(out + "/"))
      throw AlreadyExistsError(str("there is something in ", out, " already: name a new folder"));
    id_ = storage::CheckpointFolder::parse_name(last_name(out)).value_or(0);
  } else {
    const std::string folder = folder_of(source);
    if (!storage::any_disk().has_links(folder))
      throw InvalidArgumentError(
          str(folder,
              " is in a bucket, where a training that saves there cannot be seen: name a "
              "place of its own with --out"));
    lock_ = hold_folder(folder, "Or name another place with --out");
    const storage::CheckpointFolder beside(storage::any_disk(), folder);
    const auto newest = beside.latest();
    if (newest.has_value() && last_name(newest->path) != last_name(source))
      throw FailedPreconditionError(
          str(source,
              " is not the newest checkpoint of its folder, and what is made of it would be: "
              "a run that is resumed there would go back. Name a place with --out"));
    id_ = beside.next_id();
    path_ = beside.path(id_);
  }
  storage::any_disk().make_folder(path_);
}

NewCheckpoint::~NewCheckpoint() {
  if (committed_) return;
  try {
    storage::any_disk().remove_tree(path_);
  } catch (const Error&) {  // what is left has no manifest, and so is no checkpoint
  }
}

void NewCheckpoint::commit(storage::Manifest manifest, Disk::SingleWriter single) {
  if (id_ != 0) manifest.checkpoint = id_;
  storage::commit_new(storage::any_disk(), path_, manifest, single);
  committed_ = true;
}

void rewrite(const OpenedCheckpoint& checkpoint, const std::string& folder,
             std::vector<std::string> names, storage::Manifest& manifest) {
  // Rows are decoded as they are read, and written as they are. Slots that were dropped are none.
  manifest.compression = storage::Compression::kNone;
  for (storage::VariableInfo& variable : manifest.variables) {
    variable.row_form = storage::RowForm::kExact;
    if (variable.slot_form != storage::SlotForm::kDropped)
      variable.slot_form = storage::SlotForm::kExact;
  }
  const auto store = storage::make_rocks_row_store();
  storage::CheckpointWriter writer(*store, folder, std::move(names));
  Progress progress("writing", checkpoint.bytes());
  storage::RowBatch batch;
  for (const auto& variable : storage::in_key_order(manifest.variables)) {
    RowsAhead rows(checkpoint.path(), checkpoint.rows(variable));
    const auto same = [&](const storage::VariableInfo& one) { return one.name == variable.name; };
    std::find_if(manifest.variables.begin(), manifest.variables.end(), same)->parts =
        writer.begin(variable, rows.updates(), rows.seen());
    while (rows.next(batch)) {
      writer.add(batch);
      progress.add(batch.data.size());
    }
  }
  manifest.databases = writer.finish();
}

}  // namespace cairn::tools::ckpt
