// LocalSteps: training steps on the replicas of this process: under OneDeviceStrategy,
// MirroredStrategy and CentralStorageStrategy all there are, under MultiWorkerMirroredStrategy
// those of one process of a group, in which each has such an object and makes the same calls.
//
//   Agreement  what a step must know of the other processes (a signal that came to one of them,
//              that the chief's clock says to save) travels with the loss, so that it costs no
//              message.
//   Saves      between two steps, which wait for them: nothing else runs here.
//   Errors     of a save that was not asked for: kept in stats(), as under parameter servers.
#pragma once
#include <atomic>

#include "model/steps/step_runner.h"
#include "strategy/base/local_strategy.h"

namespace cairn {

class MultiWorkerMirroredStrategy;

class LocalSteps final : public StepRunner {
 public:
  // The strategy outlives it. `interrupted`: as of ClusterSteps.
  explicit LocalSteps(LocalStrategy& strategy, const std::atomic<int>* interrupted = nullptr);

  Strategy& strategy() override { return strategy_; }
  std::int64_t steps_ahead() const override { return 1; }
  std::int64_t shares() const override { return strategy_.num_replicas_in_sync(); }
  Data training_data(const Strategy::DatasetFunction& dataset_fn, Visitation visitation) override;
  Data pipelines_data(const Strategy::DatasetFunction& dataset_fn) override;
  Data test_data(const Dataset& batches, const std::string& name) override;
  bool keeps_positions() const override { return false; }
  bool makes_variables(Function&, const Data&) override { return false; }
  StepResult schedule_step(Function& function, const Data& data) override;
  StepResult schedule(Function& function, const Data& data) override;
  void predict(const PredictBody& body, const Dataset& batches, const TakeOutputs& take) override;
  void raise_failure() override {}
  void abandon() override {}
  std::string save(const CheckpointPolicy& policy, const std::string& metadata) override;
  void save_automatically(const CheckpointPolicy& policy, const std::string& metadata) override;
  void set_save_metadata(const std::string& metadata) override { metadata_ = metadata; }
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options) override;
  bool stop_requested() override { return false; }
  EngineStats stats() const override;
  std::vector<CollectiveCounts> collectives() const override;
  std::vector<CollectiveCounts> all_collectives() override;
  int interrupted() const override;
  bool as_the_chief_says(bool own) override;

 private:
  bool save_is_due() const;
  void save_by_itself();
  Tensor agreed_loss(const PerReplica& losses);
  Tensor exact_sum(const PerReplica& value);
  PerReplica own_value(const std::vector<float>& values) const;

  LocalStrategy& strategy_;
  MultiWorkerMirroredStrategy* const group_;  // null: this process is alone
  const std::atomic<int>* interrupted_;
  int agreed_signal_ = 0;  // of a group
  bool save_agreed_ = false;
  CheckpointPolicy policy_;
  std::string metadata_;
  std::int64_t saved_at_step_ = 0;
  const TimePoint started_;
  TimePoint saved_at_;
  EngineStats stats_;
};

}  // namespace cairn
