#include "model/steps/cluster_steps.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_host.h"

namespace cairn {
namespace {

// scheduled and not done: enough to keep every window full
constexpr std::int64_t kStepsAhead = 2048;
constexpr std::int64_t kPredictAhead = 256;  // batches whose outputs may lie here
const std::string kBatchNumber = "cairn/batch";
constexpr Duration kDrain = std::chrono::seconds(60);  // for what runs when the user interrupts

Batch without_number(const Batch& batch) {
  auto spec = std::make_shared<ElementSpec>();
  std::vector<Array> columns;
  for (const ColumnSpec& column : batch.features.spec().columns) {
    if (column.name == kBatchNumber) continue;
    spec->columns.push_back(column);
    columns.push_back(batch.features[column.name]);
  }
  return {Features(std::move(spec), std::move(columns)), batch.label};
}

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
                                              kTraining);
  return coordinator_.create_per_worker_dataset(dataset_fn, kTraining);
}

StepRunner::Data ClusterSteps::test_data(const Dataset& batches, const std::string& name) {
  begin_anew(name);
  return coordinator_.create_shared_dataset(batches, name);
}

// A run that is gone on with, or restored, knows where the data of an earlier evaluation stood,
// which is no place to begin another one at.
void ClusterSteps::begin_anew(const std::string& dataset) {
  servers().host().run([dataset](Engine& engine) -> rpc::Task<void> {
    engine.begin_anew(dataset);
    co_return;
  });
}

std::string ClusterSteps::journal_folder() const {
  return servers().host().engine().options().journal.folder;
}

// Each share, and each replica of a worker, takes an element a step.
std::int64_t ClusterSteps::steps_of(const Data& data) {
  const auto dataset = std::static_pointer_cast<const PerWorkerDataset>(data);
  const auto elements =
      servers().host().ask<std::uint64_t>([dataset](Engine& engine) -> rpc::Task<std::uint64_t> {
        co_return engine.elements_committed(*dataset);
      });
  return static_cast<std::int64_t>(elements) / (shares_ * servers().num_replicas_in_sync());
}

std::int64_t ClusterSteps::pipelines_of(const Data& data) {
  return static_cast<std::int64_t>(
      std::static_pointer_cast<const PerWorkerDataset>(data)->pipelines());
}

int ClusterSteps::count_fit() { return servers().host().engine().count_fit(); }

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

// A closure does not know which batch it will get, so each batch brings its number.
void ClusterSteps::predict(const PredictBody& body, const Dataset& batches,
                           const TakeOutputs& take) {
  const std::int64_t count = cardinality(batches);
  if (count == kInfiniteCardinality)
    throw InvalidArgumentError("predict: the data has no end; take() as much of it as is wanted");
  const Dataset numbers = Dataset::range(count)
                              .map([](const Features& each) {
                                return Outputs{{kBatchNumber, each["value"]}};
                              })
                              .batch(1);
  const Data data = test_data(Dataset::zip({batches, numbers}), "predict");
  Function function = strategy().function(
      [&](Iterator input) {
        const Batch batch = input.get_next();
        Outputs outputs = body(without_number(batch));
        outputs.emplace_back(kBatchNumber, batch.features[kBatchNumber]);
        return outputs;
      },
      "predict");
  std::deque<RemoteValue> running;
  std::map<std::int64_t, std::vector<Tensor>> early;
  std::int64_t scheduled = 0, taken = 0;
  while (taken < count) {
    for (; scheduled < std::min(count, taken + kPredictAhead); ++scheduled)
      running.push_back(run(function, data));
    std::vector<Tensor> outputs = running.front().get_all();
    running.pop_front();
    const std::int64_t number = outputs.back().values<std::int64_t>()[0];
    outputs.pop_back();
    early.emplace(number, std::move(outputs));
    for (auto next = early.find(taken); next != early.end(); next = early.find(taken)) {
      take(std::move(next->second));
      early.erase(next);
      ++taken;
    }
  }
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
