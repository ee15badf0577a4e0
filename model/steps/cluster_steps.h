// ClusterSteps: training steps as closures on the workers of a cluster. A thin layer over
// ClusterCoordinator, so that a step costs what it costs any program.
//
// A step is one closure, whose data is its lane's; in rounds it is a closure for each lane, and the
// lanes are dealt their shares of one batch after another, so that data is read in the order in
// which one device would read it.
#pragma once
#include <atomic>

#include "model/steps/step_runner.h"
#include "strategy/servers/cluster_coordinator.h"

namespace cairn {

class ClusterSteps final : public StepRunner {
 public:
  // The strategy outlives it. `interrupted`: the number of the signal that asks for the end, 0
  // without one; null: no signal asks.
  explicit ClusterSteps(ParameterServerStrategy& strategy,
                        const std::atomic<int>* interrupted = nullptr);

  Strategy& strategy() override { return coordinator_.strategy(); }
  std::int64_t steps_ahead() const override;
  std::int64_t shares() const override { return shares_; }
  Data training_data(const Strategy::DatasetFunction& dataset_fn, Visitation visitation) override;
  Data pipelines_data(const Strategy::DatasetFunction& dataset_fn) override {
    return training_data(dataset_fn, Visitation::kByPolicy);
  }
  Data test_data(const Dataset& batches, const std::string& name) override;
  bool keeps_positions() const override { return true; }
  bool makes_variables(Function& step, const Data& data) override;
  StepResult schedule_step(Function& function, const Data& data) override;
  StepResult schedule(Function& function, const Data& data) override {
    return StepResult(std::vector<RemoteValue>{run(function, data)});
  }
  void predict(const PredictBody& body, const Dataset& batches, const TakeOutputs& take) override;
  void raise_failure() override { coordinator_.done(); }
  void abandon() override;
  std::string save(const CheckpointPolicy& policy, const std::string& metadata) override;
  void save_automatically(const CheckpointPolicy& policy, const std::string& metadata) override;
  void set_save_metadata(const std::string& metadata) override {
    coordinator_.set_save_metadata(metadata);
  }
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options) override;
  std::string journal_folder() const override;
  std::optional<ResumedRun> resumed() const override { return coordinator_.resumed(); }
  void note(const std::string& name, const std::string& text) override {
    coordinator_.note(name, text);
  }
  std::int64_t steps_of(const Data& data) override;
  std::int64_t pipelines_of(const Data& data) override;
  void begin_data_anew() override { begin_anew(kTraining); }
  int count_fit() override;
  bool stop_requested() override { return coordinator_.stop_requested(); }
  EngineStats stats() const override { return coordinator_.stats(); }
  void set_program_status(const std::string& json) override {
    coordinator_.set_program_status(json);
  }
  std::vector<CollectiveCounts> collectives() const override { return {}; }
  std::vector<CollectiveCounts> all_collectives() override { return {}; }
  int interrupted() const override { return interrupted_ == nullptr ? 0 : interrupted_->load(); }
  bool as_the_chief_says(bool own) override { return own; }

 private:
  static constexpr const char* kTraining = "train";  // the name of the data, in checkpoints

  ParameterServerStrategy& servers() const { return coordinator_.strategy(); }
  void begin_anew(const std::string& dataset);
  RemoteValue run(Function& function, const Data& data);

  mutable ClusterCoordinator coordinator_;
  std::int64_t shares_;
  const std::atomic<int>* interrupted_;
};

}  // namespace cairn
