// The callbacks that save: what they have in common with Checkpoint is the format, so that either
// restores what the other has saved.
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "model/callback_states.h"
#include "model/callbacks.h"
#include "model/model.h"
#include "model/writers/json_number.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/folder_lock.h"

namespace cairn {

ModelCheckpoint::ModelCheckpoint(std::string folder, ModelCheckpointOptions options)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      monitor_(options_.monitor, options_.mode) {}

void ModelCheckpoint::on_train_begin(TrainingRun& run) {
  if (!options_.save_best_only || begun_) return;
  monitor_.begin(run.direction_of(monitor_.name()), "ModelCheckpoint");
  begun_ = true;
}

void ModelCheckpoint::on_epoch_end(TrainingRun& run, std::int64_t, Logs& logs) {
  if (options_.save_best_only) {
    if (!monitor_.is_due(run, logs)) return;
    if (monitor_.take(logs) != Monitor::Verdict::kBetter) return;
  }
  newest_ = run.save(CheckpointPolicy{.folder = folder_,
                                      .keep_last = options_.keep_last,
                                      .full_every = options_.full_every,
                                      .keep_every = options_.keep_every,
                                      .encoding = options_.encoding});
  if (!options_.model.empty()) run.model().save(options_.model, {.checkpoint = newest_});
}

std::optional<CallbackState> ModelCheckpoint::state() const {
  return CallbackState{json_text({{"best", number_json(monitor_.best())}, {"newest", newest_}})};
}

// A program that was killed may have saved another one behind the backup, which took the place of
// the one that the backup knows.
void ModelCheckpoint::restore_state(const CallbackState& saved) {
  const Json state = parse_json(saved.text, "the state of ModelCheckpoint");
  monitor_.go_on({.best = number_of(state.at("best"))});
  newest_ = state.at("newest").get<std::string>();
  if (newest_.empty() || storage::any_disk().exists(newest_ + "/" + storage::kManifestFile)) return;
  const auto latest = storage::CheckpointFolder(storage::any_disk(), folder_).latest();
  newest_ = latest ? latest->path : "";
}

BackupAndRestore::BackupAndRestore(std::string folder, BackupAndRestoreOptions options)
    : folder_(std::move(folder)), options_(options) {
  if (storage::absolute_place(folder_).starts_with("s3://"))
    throw InvalidArgumentError(
        str("BackupAndRestore keeps what callbacks remember in files: ", folder_,
            " is no folder of this machine. ModelCheckpoint saves into a bucket"));
  if (options_.every_steps < 0)
    throw InvalidArgumentError(
        str("BackupAndRestore: every_steps must be at least 0, got ", options_.every_steps));
}

void BackupAndRestore::on_train_begin(TrainingRun& run) {
  const auto newest = storage::CheckpointFolder(storage::any_disk(), folder_).latest();
  if (newest) run.resume(newest->path);
}

void BackupAndRestore::on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs&) {
  const bool ends_epoch = step + 1 == run.steps_per_epoch();  // which is saved a moment later
  if (options_.every_steps > 0 && (step + 1) % options_.every_steps == 0 && !ends_epoch)
    run.back_up(folder_, options_.full_every);
}

void BackupAndRestore::on_epoch_end(TrainingRun& run, std::int64_t, Logs&) {
  run.back_up(folder_, options_.full_every);
}

void BackupAndRestore::on_train_end(TrainingRun& run, const Logs&) {
  if (!options_.delete_at_end || !run.has_ended() || !run.writes_files()) return;
  for (const auto& entry : storage::CheckpointFolder(storage::any_disk(), folder_).list())
    std::filesystem::remove_all(entry.path);
  remove_other_state_files(folder_, Json::object());
  std::filesystem::remove(folder_ + "/" + storage::kLockFile);
  std::error_code not_empty;  // other files in the folder are not ours
  std::filesystem::remove(folder_, not_empty);
}

}  // namespace cairn
