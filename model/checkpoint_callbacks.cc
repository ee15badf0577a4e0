// The callbacks that save: what they have in common with Checkpoint is the format, so that either
// restores what the other has saved.
#include <filesystem>
#include <utility>

#include "core/base/disk.h"
#include "core/base/error.h"
#include "model/callbacks.h"
#include "model/model.h"
#include "storage/checkpoint_folder.h"
#include "storage/folder_lock.h"

namespace cairn {

ModelCheckpoint::ModelCheckpoint(std::string folder, ModelCheckpointOptions options)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      monitor_(options_.monitor, options_.mode) {}

void ModelCheckpoint::on_epoch_end(TrainingRun& run, std::int64_t, Logs& logs) {
  if (options_.save_best_only) {
    if (!monitor_.is_due(run, logs)) return;
    const double value = monitor_.of(logs);
    if (!monitor_.improves(value)) return;
    monitor_.take(value);
  }
  newest_ = run.save(folder_, options_.keep_last);
  if (!options_.model.empty()) run.model().save(options_.model, {.checkpoint = newest_});
}

BackupAndRestore::BackupAndRestore(std::string folder, BackupAndRestoreOptions options)
    : folder_(std::move(folder)), options_(options) {
  if (options_.every_steps < 0)
    throw InvalidArgumentError(
        str("BackupAndRestore: every_steps must be at least 0, got ", options_.every_steps));
}

void BackupAndRestore::on_train_begin(TrainingRun& run) {
  const auto newest = storage::CheckpointFolder(system_disk(), folder_).latest();
  if (newest) run.resume(newest->path);
}

void BackupAndRestore::on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs&) {
  const bool ends_epoch = step + 1 == run.steps_per_epoch();  // which is saved a moment later
  if (options_.every_steps > 0 && (step + 1) % options_.every_steps == 0 && !ends_epoch)
    run.save(folder_);
}

void BackupAndRestore::on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs&) {
  run.save(folder_);
  ended_well_ = epoch + 1 == run.epochs() || run.is_stopping();
}

void BackupAndRestore::on_train_end(TrainingRun& run, const Logs&) {
  if (!options_.delete_at_end || !ended_well_ || !run.writes_files()) return;
  for (const auto& entry : storage::CheckpointFolder(system_disk(), folder_).list())
    std::filesystem::remove_all(entry.path);
  std::filesystem::remove(folder_ + "/" + storage::kLockFile);
  std::error_code not_empty;  // what else lies there is not ours
  std::filesystem::remove(folder_, not_empty);
}

}  // namespace cairn
