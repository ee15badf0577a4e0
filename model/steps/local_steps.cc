#include "model/steps/local_steps.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <utility>

#include "core/base/look_up.h"
#include "data/dataset/stage_spec.h"
#include "strategy/in_sync/multi_worker_mirrored_strategy.h"

namespace cairn {
namespace {

double took_since(TimePoint then) {
  return std::chrono::duration<double>(system_clock().now() - then).count();
}

}  // namespace

LocalSteps::LocalSteps(LocalStrategy& strategy, const std::atomic<int>* interrupted)
    : strategy_(strategy),
      group_(dynamic_cast<MultiWorkerMirroredStrategy*>(&strategy)),
      interrupted_(interrupted),
      started_(system_clock().now()),
      saved_at_(started_) {}

// This process's addend to a sum over the group: its first replica has it, its others zeros.
PerReplica LocalSteps::own_value(const std::vector<float>& values) const {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  const int here = strategy_.num_replicas_in_sync() / group_->num_workers();
  std::vector<Array> all(static_cast<std::size_t>(here), Tensor::zeros(DType::kFloat32, shape));
  all.front() = Tensor::of<float>(shape, values);
  return PerReplica(std::move(all));
}

// ---- data ----

// Global batches, of which every replica takes its piece: what one device would read, in the same
// order.
StepRunner::Data LocalSteps::training_data(const Strategy::DatasetFunction& dataset_fn,
                                           Visitation) {
  return test_data(dataset_fn({}), "train");
}

StepRunner::Data LocalSteps::pipelines_data(const Strategy::DatasetFunction& dataset_fn) {
  return strategy_.iterate(dataset_fn);
}

// Every process of a group reads all of it, files too, and keeps its pieces: with files of its own
// each would be at another place, so that a pass, an order, or what was taken before a restart
// would mean something else than for one device. What a data service gives is dealt out by it.
StepRunner::Data LocalSteps::test_data(const Dataset& batches, const std::string&) {
  InputOptions options;
  if (group_ != nullptr && !reads_once(*batches.last()))
    options.auto_shard_policy = AutoShardPolicy::kData;
  return strategy_.iterate(strategy_.experimental_distribute_dataset(batches, options));
}

// ---- steps ----

StepResult LocalSteps::schedule_step(Function& function, const Data& data) {
  const Scope scope = strategy_.scope();
  const RunResult outputs = strategy_.run(function, {data});
  std::vector<Tensor> sums{agreed_loss(outputs.front())};
  for (std::size_t i = 1; i < outputs.size(); ++i) sums.push_back(exact_sum(outputs[i]));
  if (save_agreed_) save_by_itself();
  return StepResult(std::move(sums));
}

StepResult LocalSteps::schedule(Function& function, const Data& data) {
  const Scope scope = strategy_.scope();
  std::vector<Tensor> sums;
  for (const PerReplica& value : strategy_.run(function, {data})) sums.push_back(exact_sum(value));
  return StepResult(std::move(sums));
}

// Every replica predicts its piece of a batch, and the pieces lie behind one another.
void LocalSteps::predict(const PredictBody& body, const Dataset& batches, const TakeOutputs& take) {
  const Scope scope = strategy_.scope();
  Function function =
      strategy_.function([&](Iterator input) { return body(input.get_next()); }, "predict");
  const Data data = test_data(batches, "predict");
  try {
    for (;;) {
      std::vector<Tensor> whole;
      for (const PerReplica& value : strategy_.run(function, {data}))
        whole.push_back(value.is_per_replica() || group_ != nullptr
                            ? strategy_.gather(value, 0).tensor()
                            : value.tensor());
      take(std::move(whole));
      look_up();
    }
  } catch (const OutOfRangeError&) {  // the end of the data
  }
}

// The sum of a float32 value over all replicas. A group gathers the values, since its sums may
// travel as bfloat16, in which an AUC's counts would be wrong.
Tensor LocalSteps::exact_sum(const PerReplica& value) {
  if (group_ == nullptr) return strategy_.reduce(ReduceOp::kSum, value).tensor();
  const RunValue all = strategy_.gather(value, 0);
  const std::int64_t rows = value.of_replica(0).shape()[0];
  Tensor sum = all.tensor().rows(0, rows).clone();
  const auto total = sum.mutable_values<float>();
  for (int replica = 1; replica < strategy_.num_replicas_in_sync(); ++replica) {
    const Tensor part = all.tensor().rows(replica * rows, (replica + 1) * rows);
    std::transform(total.begin(), total.end(), part.values<float>().begin(), total.begin(),
                   std::plus<>());
  }
  return sum;
}

// The loss of the batch: of one process the sum over its replicas. In a group two more numbers are
// summed with it, and are above 0 if any process saw a signal, or the chief wants to save.
Tensor LocalSteps::agreed_loss(const PerReplica& losses) {
  if (group_ == nullptr) {
    save_agreed_ = save_is_due();
    return strategy_.reduce(ReduceOp::kSum, losses).tensor();
  }
  const int own_signal = interrupted_ == nullptr ? 0 : interrupted_->load();
  const bool own_save = group_->is_chief() && save_is_due();
  float own_loss = 0;
  for (const RunValue& loss : strategy_.experimental_local_results(losses))
    own_loss += loss.item<float>();
  const RunValue sums = strategy_.reduce(
      ReduceOp::kSum, own_value({own_loss, own_signal != 0 ? 1.0f : 0.0f, own_save ? 1.0f : 0.0f}));
  const auto all = sums.values<float>();
  if (all[1] > 0) agreed_signal_ = own_signal != 0 ? own_signal : SIGTERM;
  save_agreed_ = all[2] > 0;
  return Tensor::scalar(all[0]);
}

int LocalSteps::interrupted() const {
  if (group_ != nullptr) return agreed_signal_;
  return interrupted_ == nullptr ? 0 : interrupted_->load();
}

bool LocalSteps::as_the_chief_says(bool own) {
  if (group_ == nullptr) return own;
  const bool counts = own && group_->is_chief();
  return strategy_.reduce(ReduceOp::kSum, own_value({counts ? 1.0f : 0.0f})).values<float>()[0] > 0;
}

// ---- what was reduced ----

std::vector<CollectiveCounts> LocalSteps::collectives() const {
  const auto* several = dynamic_cast<const InSyncStrategy*>(&strategy_);
  return several == nullptr ? std::vector<CollectiveCounts>() : several->collective_counts();
}

// As whole numbers, which a group gathers without loss. If the group has lost a member by
// now, the run's outcome is known already, and the counts of this process are enough.
std::vector<CollectiveCounts> LocalSteps::all_collectives() {
  const std::vector<CollectiveCounts> own = collectives();
  if (group_ == nullptr || own.empty()) return own;
  constexpr double kMicroseconds = 1e6;
  constexpr std::size_t kNumbers = 4;
  std::vector<Array> told;
  for (const CollectiveCounts& each : own) {
    const std::vector<std::int64_t> numbers = {
        static_cast<std::int64_t>(each.calls), static_cast<std::int64_t>(each.bytes),
        static_cast<std::int64_t>(each.held_seconds * kMicroseconds),
        static_cast<std::int64_t>(each.waited_seconds * kMicroseconds)};
    told.emplace_back(Tensor::of<std::int64_t>({kNumbers}, numbers));
  }
  std::vector<CollectiveCounts> all;
  try {
    const RunValue gathered = strategy_.gather(PerReplica(std::move(told)), 0);
    const auto values = gathered.values<std::int64_t>();
    for (std::size_t i = 0; i + kNumbers <= values.size(); i += kNumbers)
      all.push_back({static_cast<std::uint64_t>(values[i]),
                     static_cast<std::uint64_t>(values[i + 1]),
                     static_cast<double>(values[i + 2]) / kMicroseconds,
                     static_cast<double>(values[i + 3]) / kMicroseconds});
  } catch (const UnavailableError&) {
    return own;
  }
  return all;
}

// ---- checkpoints ----

std::string LocalSteps::save(const CheckpointPolicy& policy, const std::string& metadata) {
  const TimePoint began = system_clock().now();
  stats_.last_checkpoint = strategy_.save(policy, metadata);
  stats_.last_checkpoint_seconds = took_since(began);
  ++stats_.checkpoints;
  return stats_.last_checkpoint;
}

void LocalSteps::save_automatically(const CheckpointPolicy& policy, const std::string& metadata) {
  policy_ = policy;
  metadata_ = metadata;
  saved_at_step_ = strategy_.global_step();
  saved_at_ = system_clock().now();
}

bool LocalSteps::save_is_due() const {
  const std::int64_t step = strategy_.global_step(), every = policy_.every_steps;
  if (every > 0 && step / every > saved_at_step_ / every) return true;
  return policy_.every_seconds > 0 && took_since(saved_at_) >= policy_.every_seconds;
}

// In a group it fails for all or for none, so that all go on. If the group itself has ended, the
// next step says so.
void LocalSteps::save_by_itself() {
  saved_at_step_ = strategy_.global_step();
  saved_at_ = system_clock().now();
  try {
    save(policy_, metadata_);
  } catch (const Error& error) {
    ++stats_.checkpoints_failed;
    stats_.checkpoint_error = error.what();
  }
}

// A checkpoint goes on under any strategy, whose data has other names: its place follows from the
// steps.
RestoreStatus LocalSteps::restore(const std::string& checkpoint, const RestoreOptions& options) {
  RestoreOptions own = options;
  own.new_data = true;
  return strategy_.restore(checkpoint, own);
}

EngineStats LocalSteps::stats() const {
  EngineStats stats = stats_;
  stats.uptime_seconds = took_since(started_);
  stats.global_step = strategy_.global_step();
  return stats;
}

}  // namespace cairn
