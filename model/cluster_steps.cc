#include "model/cluster_steps.h"

#include <utility>

#include "coordinator/engine.h"
#include "coordinator/engine_host.h"

namespace cairn {
namespace {

// scheduled and not done: enough to keep every window full
constexpr std::int64_t kStepsAhead = 2048;
constexpr Duration kDrain = std::chrono::seconds(60);  // for what runs when the user interrupts

// In rounds each lane has one.
std::int64_t shares_of_a_step(ParameterServerStrategy& strategy) {
  Engine& engine = strategy.host().engine();
  if (!engine.options().consistency.in_rounds()) return 1;
  return static_cast<std::int64_t>(engine.workers_of_lanes().size());
}

}  // namespace

ClusterSteps::ClusterSteps(ParameterServerStrategy& strategy, const std::atomic<int>* interrupted)
    : coordinator_(strategy), shares_(shares_of_a_step(strategy)), interrupted_(interrupted) {}

std::int64_t ClusterSteps::steps_ahead() const { return kStepsAhead; }

StepRunner::Data ClusterSteps::training_data(const Strategy::DatasetFunction& dataset_fn,
                                             Visitation visitation) {
  if (shares_ > 1 || visitation == Visitation::kExactlyOnce)
    return coordinator_.create_shared_dataset(dataset_fn({.num_replicas_in_sync = shares_}),
                                              "train");
  return coordinator_.create_per_worker_dataset(dataset_fn, "train");
}

StepRunner::Data ClusterSteps::test_data(const Dataset& batches, const std::string& name) {
  return coordinator_.create_shared_dataset(batches, name);
}

bool ClusterSteps::makes_variables(Function& step, const Data& data) {
  step.concrete({data}, coordinator_.strategy());
  return true;
}

StepResult ClusterSteps::schedule_step(Function& function, const Data& data) {
  std::vector<RemoteValue> shares;
  for (std::int64_t i = 0; i < shares_; ++i) shares.push_back(run(function, data));
  return StepResult(std::move(shares));
}

// All data here was made above.
RemoteValue ClusterSteps::run(Function& function, const Data& data) {
  return coordinator_.schedule(function, {std::static_pointer_cast<const PerWorkerDataset>(data)});
}

void ClusterSteps::abandon() {
  coordinator_.cancel();
  coordinator_.join(kDrain);
}

std::string ClusterSteps::save(const CheckpointPolicy& policy, const std::string& metadata) {
  return coordinator_.save(policy, metadata);
}
void ClusterSteps::save_automatically(const CheckpointPolicy& policy, const std::string& metadata) {
  coordinator_.save_automatically(policy, metadata);
}
RestoreStatus ClusterSteps::restore(const std::string& checkpoint, const RestoreOptions& options) {
  return coordinator_.restore(checkpoint, options);
}

}  // namespace cairn
