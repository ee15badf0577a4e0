// StepRunner: how training steps run, as a training loop sees them (Model::fit(), and the Trainer
// of tools/). Two runners serve all strategies:
//
//   ClusterSteps  steps are closures of a ClusterCoordinator, thousands of them under way at once
//   LocalSteps    a step runs on the replicas of this process, in step with those of other
//                 processes if there are any, and has ended when it is scheduled
//
// Where several processes train together, each has a loop, and all of them must do the same in the
// same order. So what only one of them can know (a signal, the time, that a save is
// due) is agreed on here.
//   Thread  one, the loop's.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/base/counts.h"
#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/engine_options.h"
#include "coordinator/cluster/restore_status.h"
#include "data/dataset/dataset.h"
#include "strategy/base/distributed_dataset.h"
#include "strategy/base/strategy.h"

namespace cairn {

// The values that a step returned, or will return. If a step is computed in several shares, they
// are the sums of the shares' values, float32 each.
class StepResult {
 public:
  explicit StepResult(std::vector<RemoteValue> shares) : shares_(std::move(shares)) {}
  explicit StepResult(std::vector<Tensor> values) : values_(std::move(values)) {}
  bool ready() const;  // get_all() would not wait
  // Whether the value is there, after waiting for it a little.
  //   Errors  the step's.
  bool ready_soon() const;
  //   Errors  the step's.
  std::vector<Tensor> get_all() const;

 private:
  std::vector<RemoteValue> shares_;
  std::vector<Tensor> values_;  // where there are no shares
};

class StepRunner {
 public:
  // A dataset of this runner.
  using Data = std::shared_ptr<const IteratorSource>;
  virtual ~StepRunner() = default;

  virtual Strategy& strategy() = 0;
  // A number of steps that may be scheduled and not have ended: enough to keep all workers busy.
  virtual std::int64_t steps_ahead() const = 0;
  // How many runs of the step's function one step is made of. Each has its share of the batch, and
  // their gradients and losses add up.
  virtual std::int64_t shares() const = 0;

  // Batches of `data.batch` examples, divided by the context's num_replicas_in_sync; the function
  // is called once per input pipeline. With kExactlyOnce there is one pipeline, whose batches go to
  // one run each; runners whose steps come one after another have no other.
  virtual Data training_data(const Strategy::DatasetFunction& dataset_fn,
                             Visitation visitation) = 0;
  // Batches of a program's own function, which are for one replica each: replicas take them in
  // turn. The function is called once per input pipeline: for each lane of a cluster, else in each
  // process that trains.
  virtual Data pipelines_data(const Strategy::DatasetFunction& dataset_fn) = 0;
  // Batches of which each goes to one run. `name`: in checkpoints.
  virtual Data test_data(const Dataset& batches, const std::string& name) = 0;
  // Whether checkpoints hold where training_data() stands. If not, it is made again to go on, with
  // the elements left out that were taken before.
  virtual bool keeps_positions() const = 0;

  // Makes the variables of a step without running it, where that is possible; else false, and the
  // first step makes them.
  virtual bool makes_variables(Function& step, const Data& data) = 0;

  // Begins one run of a function that takes one element of `data`, a step. Its first output is the
  // loss of the batch, or of the part of it that the replica has; the others are float32, and the
  // step's are the sums over all replicas, too.
  //   Errors  those of ClusterCoordinator::schedule(), or, where the run has ended, its own.
  virtual StepResult schedule_step(Function& function, const Data& data) = 0;
  // The same of a function that changes no variable: the sums of its outputs over all replicas.
  virtual StepResult schedule(Function& function, const Data& data) = 0;
  // Runs what `body` records for every element of `batches`, which is finite, once, and gives the
  // outputs of each, whole, to `take`, in the order of the data. Whatever trains goes on beside it.
  //   Errors  InvalidArgument: `batches` has no end, or an output is a scalar. The run's.
  using PredictBody = std::function<Outputs(const Batch&)>;
  using TakeOutputs = std::function<void(std::vector<Tensor>)>;
  virtual void predict(const PredictBody& body, const Dataset& batches,
                       const TakeOutputs& take) = 0;
  // Raises the error for which results were cancelled, if there is one.
  virtual void raise_failure() = 0;
  // Cancels the runs that have not begun, and waits for the rest.
  //   Errors  the first of the rest.
  virtual void abandon() = 0;

  // As ClusterCoordinator has them.
  virtual std::string save(const CheckpointPolicy& policy, const std::string& metadata) = 0;
  virtual void save_automatically(const CheckpointPolicy& policy, const std::string& metadata) = 0;
  // Replaces the metadata of automatic checkpoints.
  virtual void set_save_metadata(const std::string& metadata) = 0;
  virtual RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options) = 0;
  virtual bool stop_requested() = 0;
  virtual EngineStats stats() const = 0;
  // JSON that the program says of itself: part of what `cairn status` asks a coordinator for.
  // Nothing where there is none.
  virtual void set_program_status(const std::string&) {}

  // ---- the journal of the run (EngineOptions::journal) ----
  // Its folder; empty: there is none, and nothing is noted.
  virtual std::string journal_folder() const { return {}; }
  // As ClusterCoordinator has them.
  virtual std::optional<ResumedRun> resumed() const { return std::nullopt; }
  virtual void note(const std::string& /*name*/, const std::string& /*text*/) {}
  // How many steps of this training data have ended, from its beginning in the run. Only where
  // there is a journal.
  virtual std::int64_t steps_of(const Data&) { return 0; }
  // How many pipelines it has. A run that is gone on with wants as many as it had.
  virtual std::int64_t pipelines_of(const Data&) { return 1; }
  // The next training data begins at its beginning, wherever that of an earlier process stood.
  virtual void begin_data_anew() {}
  // Counts the calls of Model::fit() in this process, from 1 on.
  virtual int count_fit() { return 0; }

  // The counts of collective calls of each replica in this process; empty: there are none.
  virtual std::vector<CollectiveCounts> collectives() const = 0;
  // The same of all replicas in sync, in their order: asked by all processes, at the end.
  virtual std::vector<CollectiveCounts> all_collectives() = 0;

  // The signal that asks for the end, on whichever process it came; 0: none.
  virtual int interrupted() const = 0;
  // The chief's answer to a question that all processes ask.
  virtual bool as_the_chief_says(bool own) = 0;
};

}  // namespace cairn
