#include "tools/cluster_steps.h"

#include <utility>

namespace cairn::tools {
namespace {

// scheduled and not done: enough to keep every window full
constexpr std::int64_t kStepsAhead = 2048;
constexpr Duration kDrain = std::chrono::seconds(60);  // for what runs when the user interrupts

}  // namespace

std::int64_t ClusterSteps::steps_ahead() const { return kStepsAhead; }

StepRunner::Data ClusterSteps::training_data(const Strategy::DatasetFunction& dataset_fn) {
  return coordinator_.create_per_worker_dataset(dataset_fn, "train");
}

StepRunner::Data ClusterSteps::test_data(const Dataset& batches) {
  return coordinator_.create_shared_dataset(batches, "test");
}

bool ClusterSteps::makes_variables(Function& step, const Data& data) {
  step.concrete({data}, coordinator_.strategy());
  return true;
}

StepResult ClusterSteps::schedule_step(Function& function, const Data& data) {
  return schedule(function, data);
}

// All data here was made above.
StepResult ClusterSteps::schedule(Function& function, const Data& data) {
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

}  // namespace cairn::tools
