#include "tools/cluster_steps.h"

#include <utility>

namespace cairn::tools {
namespace {

// scheduled and not done: enough to keep every window full
constexpr std::int64_t kStepsAhead = 2048;
constexpr Duration kDrain = std::chrono::seconds(60);  // for what runs when the user interrupts
// How long a loop that waits for results stays away from the user's signals.
constexpr Duration kLook = std::chrono::milliseconds(100);

}  // namespace

bool StepResult::ready() const {
  const auto* remote = std::get_if<RemoteValue>(&value_);
  return remote == nullptr || remote->ready();
}

bool StepResult::ready_soon() const {
  if (ready()) return true;
  try {
    std::get<RemoteValue>(value_).get_all(kLook);
    return true;
  } catch (const DeadlineExceededError&) {
    return false;
  }
}

std::vector<Tensor> StepResult::get_all() const {
  if (const auto* remote = std::get_if<RemoteValue>(&value_)) return remote->get_all();
  return std::get<std::vector<Tensor>>(value_);
}

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
