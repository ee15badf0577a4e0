// The callbacks that programs reach for, under the reference's names and with its rules.
//
//   model.fit(train, {.epochs = 20,
//                     .validation_data = validation,
//                     .callbacks = {std::make_shared<EarlyStopping>(EarlyStoppingOptions{
//                                       .monitor = "val_auc", .patience = 3}),
//                                   std::make_shared<BackupAndRestore>("/backup")}});
//
//   monitor  a name of the logs. Its metric says which way is better (model/monitor.h); of a loss,
//            less is. A name that no metric or loss of the model has, such as one that a callback
//            adds to the logs, wants a `mode`. A name that the logs do not have is an error that
//            lists those that they have. A value that is not a number does not count.
//   Restart  what they remember is part of BackupAndRestore's backup.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "model/callback.h"
#include "model/monitor.h"
#include "storage/row_encoding.h"

namespace cairn {

class CsvLog;  // model/writers/csv_log.h

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;
  std::int64_t patience = 0;  // epochs without an improvement before training stops
  MonitorMode mode = MonitorMode::kAuto;
  // A value that must be bettered within `patience` epochs. NaN: there is none.
  double baseline = std::numeric_limits<double>::quiet_NaN();
  // At the end, for whatever reason but an error training ends, the weights of the best epoch are
  // put back, as `restore_best` of a job does. Whole values in memory: see Model::get_weights().
  bool restore_best_weights = false;
  std::int64_t start_from_epoch = 0;
};
class EarlyStopping final : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {});
  void on_train_begin(TrainingRun& run) override;
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override;
  void on_train_end(TrainingRun& run, const Logs& logs) override;
  std::optional<CallbackState> state() const override;
  void restore_state(const CallbackState& saved) override;
  // The epoch after which it stopped; -1: it did not.
  std::int64_t stopped_epoch() const { return stopped_epoch_; }
  std::int64_t best_epoch() const { return monitor_.best_at(); }

 private:
  EarlyStoppingOptions options_;
  Monitor monitor_;
  std::int64_t stopped_epoch_ = -1, last_epoch_ = -1;
  std::vector<Tensor> best_weights_;
};

struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;  // below 1
  std::int64_t patience = 10;
  MonitorMode mode = MonitorMode::kAuto;
  double min_delta = 1e-4;
  std::int64_t cooldown = 0;  // epochs after a reduction in which nothing is counted
  double min_lr = 0;
};
// The rule alone, for training loops of another kind.
class PlateauRule {
 public:
  //   Errors  InvalidArgument: a factor that is not above 0 and below 1, a min_delta below 0.
  explicit PlateauRule(ReduceLROnPlateauOptions options);
  // Begins anew.
  //   Errors  Monitor::begin()'s.
  void begin(nn::Direction direction);
  // Takes a value of what is monitored. Whether it is time to lower the rates: each of `rates` that
  // is above min_lr is then `factor` of what it was, but not below min_lr. If none is above it,
  // nothing happens.
  bool lower(double value, std::vector<double>& rates);
  const Monitor& monitor() const { return monitor_; }

  // state() is the rule's memory as text; restore_state() continues from an earlier rule's.
  std::string state() const;
  void restore_state(const std::string& saved);

 private:
  ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  std::int64_t cooling_ = 0;
};
class ReduceLROnPlateau final : public Callback {
 public:
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});
  void on_train_begin(TrainingRun& run) override;
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override;
  std::optional<CallbackState> state() const override { return CallbackState{rule_.state()}; }
  void restore_state(const CallbackState& saved) override { rule_.restore_state(saved.text); }
  bool adjusts_learning_rate() const override { return true; }

 private:
  PlateauRule rule_;
};

// The rate of each epoch, from its number and the rate so far.
class LearningRateScheduler final : public Callback {
 public:
  using Schedule = std::function<double(std::int64_t epoch, double rate)>;
  explicit LearningRateScheduler(Schedule schedule);
  void on_epoch_begin(TrainingRun& run, std::int64_t epoch) override;
  // Nothing but that an epoch has begun: its rate must not be made of itself once more.
  std::optional<CallbackState> state() const override { return CallbackState(); }
  bool adjusts_learning_rate() const override { return true; }

 private:
  Schedule schedule_;
};

// Saves a checkpoint after every epoch, or only those that are better than any before.
struct ModelCheckpointOptions {
  std::string monitor = "val_loss";
  bool save_best_only = false;
  MonitorMode mode = MonitorMode::kAuto;
  // As CheckpointPolicy has them. Deltas (full_every above 1) are of parameter servers alone.
  std::size_t keep_last = 5, keep_every = 0, full_every = 1;
  storage::RowEncoding encoding = {};
  // A folder for the model of the newest of them (Model::save()): with save_best_only the best one,
  // whatever training does afterwards. Empty: none.
  std::string model = "";
};
class ModelCheckpoint final : public Callback {
 public:
  explicit ModelCheckpoint(std::string folder, ModelCheckpointOptions options = {});
  void on_train_begin(TrainingRun& run) override;
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override;
  std::optional<CallbackState> state() const override;
  void restore_state(const CallbackState& saved) override;
  // The newest, for Checkpoint::restore(); empty: none was saved.
  const std::string& newest() const { return newest_; }

 private:
  std::string folder_, newest_;
  ModelCheckpointOptions options_;
  Monitor monitor_;
  bool begun_ = false;  // by an earlier fit() perhaps, whose best counts
};

// Training that was killed goes on where it was saved last, when the same program is started again:
// variables, slots, step, place in the data, metrics of the epoch so far, history, and what the
// other callbacks remember, wherever they stand in the list. At the end of training the backup is
// removed.
//   Errors  FailedPrecondition: the folder has checkpoints of another program.
struct BackupAndRestoreOptions {
  std::int64_t every_steps = 0;  // of an epoch; 0: after each epoch alone
  bool delete_at_end = true;
  std::size_t full_every = 1;  // as CheckpointPolicy's, under parameter servers alone
};
class BackupAndRestore final : public Callback {
 public:
  explicit BackupAndRestore(std::string folder, BackupAndRestoreOptions options = {});
  void on_train_begin(TrainingRun& run) override;
  void on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs& logs) override;
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override;
  void on_train_end(TrainingRun& run, const Logs& logs) override;

 private:
  std::string folder_;
  BackupAndRestoreOptions options_;
};

// A step whose loss is not finite ends training without an error: the step has changed nothing.
class TerminateOnNaN final : public Callback {
 public:
  bool takes_bad_loss() const override { return true; }
};

// A line of logs per epoch, "epoch" first, then the names in alphabetical order. Behind a restart
// from a backup it goes on after the line of the backup's last epoch.
//   Errors  the disk's; FailedPrecondition: a file to append to has other columns.
struct CSVLoggerOptions {
  std::string separator = ",";
  bool append = false;  // false: a file of that name is replaced, at the first line
};
class CSVLogger final : public Callback {
 public:
  explicit CSVLogger(std::string path, CSVLoggerOptions options = {});
  ~CSVLogger() override;
  void on_train_begin(TrainingRun& run) override;
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override;
  void on_train_end(TrainingRun& run, const Logs& logs) override;
  std::optional<CallbackState> state() const override;
  void restore_state(const CallbackState& saved) override;

 private:
  void begin_lines(TrainingRun& run, const Logs& logs);
  std::string path_;
  CSVLoggerOptions options_;
  std::unique_ptr<CsvLog> log_;       // null: another process writes, or training has not begun
  std::vector<std::string> columns_;  // without "epoch"; empty: this fit() has written no line
  std::uint64_t kept_ = 0;            // bytes of the file that stay, before the first line
};

// Functions in the places of a callback's; those that are empty are left out.
struct LambdaCallbackOptions {
  std::function<void(std::int64_t epoch)> on_epoch_begin = {};
  std::function<void(std::int64_t epoch, const Logs& logs)> on_epoch_end = {};
  std::function<void(std::int64_t step, const Logs& logs)> on_train_batch_end = {};
  std::function<void()> on_train_begin = {};
  std::function<void(const Logs& logs)> on_train_end = {};
  // The memory of the other functions, as Callback::state() defines it. Give both or neither.
  std::function<CallbackState()> state = {};
  std::function<void(const CallbackState& saved)> restore_state = {};
};
class LambdaCallback final : public Callback {
 public:
  //   Errors  InvalidArgument: one of state and restore_state without the other.
  explicit LambdaCallback(LambdaCallbackOptions options);
  void on_train_begin(TrainingRun& run) override;
  void on_train_end(TrainingRun& run, const Logs& logs) override;
  void on_epoch_begin(TrainingRun& run, std::int64_t epoch) override;
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override;
  void on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs& logs) override;
  std::optional<CallbackState> state() const override;
  void restore_state(const CallbackState& saved) override;
  bool wants_batch_logs() const override { return bool(options_.on_train_batch_end); }

 private:
  LambdaCallbackOptions options_;
};

}  // namespace cairn
