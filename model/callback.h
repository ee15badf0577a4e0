// Callback: code that Model::fit() and evaluate() call while they run. The family is in
// model/callbacks.h; one of your own derives from Callback and overrides what it needs.
//
//   struct Shout : Callback {
//     void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override {
//       std::printf("epoch %d: %f\n", int(epoch), logs["loss"]);
//       if (logs["loss"] < 0.1) run.stop_training();
//     }
//   };
//
// Several processes that train together each have their own callbacks, and must do the same in
// them: whatever decides (a loss, a metric) is equal on all. Files are written where
// TrainingRun::writes_files() says so.
//
// A callback that remembers something from one call to the next gives it out by state(), so that a
// program that is killed and started again goes on as if nothing had happened:
//
//   std::optional<CallbackState> state() const override { return {{std::to_string(epochs_)}}; }
//   void restore_state(const CallbackState& saved) override { epochs_ = std::stoi(saved.text); }
//   Thread  the one that called fit().
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster/engine_options.h"
#include "core/tensor/tensor.h"
#include "model/logs.h"

namespace cairn {

class Model;
namespace nn {
enum class Direction : std::uint8_t;
}

// The memory of a callback, as a backup keeps it.
struct CallbackState {
  std::string text = {};             // in UTF-8, of a form that is the callback's own
  std::vector<Tensor> tensors = {};  // numbers
};

// The fit() that runs, as callbacks see and steer it.
class TrainingRun {
 public:
  virtual ~TrainingRun() = default;
  virtual Model& model() = 0;
  // No step begins after those that have begun; the epoch ends as it stands.
  virtual void stop_training() = 0;
  virtual bool is_stopping() const = 0;
  virtual std::int64_t epochs() const = 0;  // the number of the last one, plus one
  virtual std::int64_t steps_per_epoch() const = 0;
  // The names in the logs of epochs. Those of the validation, "val_...", are there only after
  // epochs that a validation follows.
  virtual std::vector<std::string> log_names() const = 0;
  // How many steps of this epoch have been taken: above 0 at its beginning where a backup goes on
  // within it.
  virtual std::int64_t step() const = 0;
  // One process of those that train together: the chief.
  virtual bool writes_files() const = 0;

  // Whether training is over: all epochs, or as a callback asked; neither an error nor a bad loss.
  virtual bool has_ended() const = 0;
  // Which way the loss or metric of that name in the logs moves as the model gets better.
  //   Errors  InvalidArgument: it can never be a number, for want of labels in the validation data.
  virtual nn::Direction direction_of(const std::string& log) const = 0;

  // A checkpoint of variables, slots and the place of training, below `folder`; its own folder is
  // returned. All processes that train together call it.
  //   Errors  those of Strategy::save().
  virtual std::string save(const CheckpointPolicy& policy) = 0;
  std::string save(const std::string& folder, std::size_t keep_last = 1) {
    return save(CheckpointPolicy{.folder = folder, .keep_last = keep_last});
  }
  // The same with the states of all callbacks, as soon as each of them has been called for this end
  // of a batch or of an epoch; it replaces the backup before. In on_train_batch_end() and
  // on_epoch_end() only.
  //   full_every  as CheckpointPolicy's.
  virtual void back_up(const std::string& folder, std::size_t full_every = 1) = 0;
  // Goes on from such a checkpoint: with its variables, at its epoch and step, with its metrics and
  // history, and with the callbacks' states if back_up() made it. In on_train_begin() only.
  //   Errors  those of Strategy::restore(); FailedPrecondition: another kind of checkpoint;
  //           DataLoss: a file of states is damaged.
  virtual void resume(const std::string& checkpoint) = 0;
};

class Callback {
 public:
  virtual ~Callback() = default;

  virtual void on_train_begin(TrainingRun&) {}
  // Also if training ends by an error, which fit() then raises.
  virtual void on_train_end(TrainingRun&, const Logs&) {}
  virtual void on_epoch_begin(TrainingRun&, std::int64_t /*epoch*/) {}
  // `logs` may be changed: what the callbacks that follow see, and what History keeps.
  virtual void on_epoch_end(TrainingRun&, std::int64_t /*epoch*/, Logs&) {}
  // `step`: of this epoch, from 0; with several steps per execution the last of them. `logs`: the
  // means since the epoch began. In the order in which steps were begun, when their results have
  // come.
  virtual void on_train_batch_end(TrainingRun&, std::int64_t /*step*/, const Logs&) {}
  virtual void on_test_begin() {}
  virtual void on_test_end(const Logs&) {}

  // The callback's memory, for backups; empty if it has none. After a restart, restore_state() gets
  // the value that state() returned in the earlier process, after on_train_begin(). A backup within
  // an epoch includes the effects of on_epoch_begin(), which is not called for that epoch again.
  virtual std::optional<CallbackState> state() const { return std::nullopt; }
  virtual void restore_state(const CallbackState&) {}

  // Whether on_train_batch_end() needs its logs, which cost a metric's result at each step.
  virtual bool wants_batch_logs() const { return false; }
  // Whether it sets the optimizer's learning rate (nn/optimizers/optimizer_base.h), which fit()
  // then makes adjustable.
  virtual bool adjusts_learning_rate() const { return false; }
  // Whether it takes care of a step whose loss was not finite: fit() then ends without an error.
  virtual bool takes_bad_loss() const { return false; }
};

}  // namespace cairn
