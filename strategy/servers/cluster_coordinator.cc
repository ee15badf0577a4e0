#include "strategy/servers/cluster_coordinator.h"

#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_host.h"
#include "core/base/json.h"
#include "core/graph/recording.h"
#include "data/stage/dataset_wire.h"

namespace cairn {
namespace {

constexpr std::size_t kNoteBytesMax = 64'000'000;

Engine& engine_of(ParameterServerStrategy& strategy) { return strategy.host().engine(); }

// Calls the dataset function; its errors name the dataset, so that they do not look like a step's.
Dataset described(const std::function<Dataset(const InputContext&)>& dataset_fn,
                  const InputContext& context, const std::string& name) {
  try {
    Dataset dataset = dataset_fn(context);
    if (!dataset.defined()) throw InvalidArgumentError("it returned no dataset");
    return dataset;
  } catch (...) {
    ErrorParts parts = error_parts(std::current_exception());
    auto pipeline = static_cast<std::uint64_t>(context.input_pipeline_id);
    std::string message = str("the dataset function of \"", name, "\" failed for pipeline ",
                              pipeline, " of ", context.num_input_pipelines, ": ", parts.message);
    throw ClosureInputError(parts.code, message, parts.task, pipeline);
  }
}

}  // namespace

ClusterCoordinator::ClusterCoordinator(ParameterServerStrategy& strategy) : strategy_(strategy) {}

RemoteValue ClusterCoordinator::schedule_nothing() {
  CAIRN_CHECK(false, "a call of schedule that does not compile");
}

RemoteValue ClusterCoordinator::schedule(Function& function,
                                         const std::vector<ScheduleArgument>& arguments) {
  if (TraceContext::current() != nullptr)
    throw FailedPreconditionError(
        str("schedule: a function is being traced on this thread, so \"", function.name(),
            "\" would run once, now, and not whenever that function runs; make it a part of that ",
            "function with strategy.run(), or schedule it outside"));
  // Layers that the function makes while it is traced ask for variables in this scope.
  const Scope open = strategy_.scope();
  return strategy_.enqueue(function, arguments);
}

void ClusterCoordinator::join(Duration limit) { engine_of(strategy_).queue().join(limit); }
void ClusterCoordinator::cancel() { engine_of(strategy_).queue().cancel(); }
bool ClusterCoordinator::done() { return engine_of(strategy_).queue().done(); }

InputContext ClusterCoordinator::context(std::size_t pipeline) const {
  return {static_cast<std::int64_t>(engine_of(strategy_).lane_count()),
          static_cast<std::int64_t>(pipeline), strategy_.num_replicas_in_sync()};
}

PerWorkerDatasetHandle ClusterCoordinator::create_per_worker_dataset(
    const std::function<Dataset(const InputContext&)>& dataset_fn, std::string name) {
  return create_per_worker_dataset(
      dataset_fn, std::move(name),
      [this](const Dataset& dataset, std::size_t) { return strategy_.in_turn(dataset); });
}

PerWorkerDatasetHandle ClusterCoordinator::create_per_worker_dataset(
    const DatasetFunction& dataset_fn, std::string name, const Dealt& dealt) {
  std::vector<std::vector<std::byte>> descriptions;
  ElementSpec spec;
  for (std::size_t i = 0; i < engine_of(strategy_).lane_count(); ++i) {
    const Dataset dataset = dealt(described(dataset_fn, context(i), name), i);
    if (i > 0 && !(dataset.element_spec() == spec))
      throw InvalidArgumentError(
          str("the dataset function gave pipeline ", i, " other columns than pipeline 0"));
    spec = dataset.element_spec();
    descriptions.push_back(serialize(dataset.for_pipeline(context(i).input_pipeline_id)));
  }
  return add_dataset(std::move(name), std::move(descriptions), std::move(spec), false);
}

// The user's functions have run on the caller's thread, however long they took. Only the entry into
// the book of positions is made on the engine's loop, to which that book belongs.
PerWorkerDatasetHandle ClusterCoordinator::add_dataset(
    std::string name, std::vector<std::vector<std::byte>> descriptions, ElementSpec spec,
    bool shared) {
  return strategy_.host().ask<PerWorkerDatasetHandle>(
      [=](Engine& engine) -> rpc::Task<PerWorkerDatasetHandle> {
        co_return engine.add_dataset(name, descriptions, spec, shared);
      });
}

PerWorkerDatasetHandle ClusterCoordinator::create_per_worker_dataset(const Dataset& dataset,
                                                                     std::string name) {
  return create_per_worker_dataset(strategy_.experimental_distribute_dataset(dataset),
                                   std::move(name));
}

PerWorkerDatasetHandle ClusterCoordinator::create_per_worker_dataset(
    const DistributedDataset& dataset, std::string name) {
  if (dataset.function()) return create_per_worker_dataset(dataset.function(), std::move(name));
  const InputOptions& options = dataset.options();
  const auto lanes = static_cast<std::int64_t>(engine_of(strategy_).lane_count());
  bool all = options.auto_shard_policy == AutoShardPolicy::kAuto;
  if (options.visitation == Visitation::kExactlyOnce && all) {
    all = false;
    if (auto_shard(dataset.dataset(), AutoShardPolicy::kAuto, lanes, 0).applied !=
        AutoShardPolicy::kFile)
      return create_shared_dataset(dataset, std::move(name));
  }
  return create_per_worker_dataset(
      [&dataset](const InputContext&) { return dataset.dataset(); }, std::move(name),
      [&](const Dataset& whole, std::size_t pipeline) {
        const auto part = auto_shard(whole, all ? AutoShardPolicy::kOff : options.auto_shard_policy,
                                     lanes, static_cast<std::int64_t>(pipeline));
        return strategy_.cut(part.dataset, options);
      });
}

PerWorkerDatasetHandle ClusterCoordinator::create_shared_dataset(const Dataset& dataset,
                                                                 std::string name) {
  return create_shared_dataset(strategy_.experimental_distribute_dataset(dataset), std::move(name));
}

PerWorkerDatasetHandle ClusterCoordinator::create_shared_dataset(const DistributedDataset& dataset,
                                                                 std::string name) {
  if (dataset.function())
    throw InvalidArgumentError(
        "create_shared_dataset: a dataset function makes a stream for each pipeline; pass its "
        "dataset, or use create_per_worker_dataset");
  const Dataset dealt = strategy_.cut(dataset.dataset(), dataset.options());
  return add_dataset(std::move(name), {serialize(dealt)}, dealt.element_spec(), true);
}

PerWorkerValues ClusterCoordinator::create_per_worker_values(
    const std::function<Tensor(const InputContext&)>& value_fn) {
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < engine_of(strategy_).lane_count(); ++i) {
    values.push_back(value_fn(context(i)));
    if (!(values.back().type() == values.front().type()))
      throw InvalidArgumentError(str("per-worker value ", i, " is ",
                                     values.back().type().to_string(), ", value 0 is ",
                                     values.front().type().to_string()));
  }
  return PerWorkerValues(std::move(values));
}

std::string ClusterCoordinator::save(const CheckpointPolicy& policy, const std::string& metadata) {
  return strategy_.save(policy, metadata);
}

void ClusterCoordinator::save_automatically(const CheckpointPolicy& policy,
                                            const std::string& metadata) {
  strategy_.host().run([policy, metadata](Engine& engine) -> rpc::Task<void> {
    engine.save_by(policy, metadata);
    co_return;
  });
}

void ClusterCoordinator::set_save_metadata(const std::string& metadata) {
  strategy_.host().run([metadata](Engine& engine) -> rpc::Task<void> {
    engine.set_save_metadata(metadata);
    co_return;
  });
}

void ClusterCoordinator::hold_folder(std::shared_ptr<const storage::FolderLock> lock) {
  strategy_.host().run([lock = std::move(lock)](Engine& engine) -> rpc::Task<void> {
    engine.hold_folder(lock);
    co_return;
  });
}

RestoreStatus ClusterCoordinator::restore(const std::string& checkpoint,
                                          const RestoreOptions& options) {
  return strategy_.restore(checkpoint, options);
}

std::optional<ResumedRun> ClusterCoordinator::resumed() const {
  return engine_of(strategy_).resumed();
}

void ClusterCoordinator::note(const std::string& name, const std::string& text) {
  if (name.size() + text.size() > kNoteBytesMax)
    throw InvalidArgumentError(str("note: \"", name.substr(0, 100), "\" and its text have ",
                                   name.size() + text.size(), " bytes, at most ", kNoteBytesMax,
                                   " are possible: keep large things in files, and note their "
                                   "names"));
  strategy_.host().run([name, text](Engine& engine) { return engine.note(name, text); });
}

bool ClusterCoordinator::stop_requested() { return engine_of(strategy_).stop_requested(); }

QueueCounts ClusterCoordinator::counts() const { return engine_of(strategy_).queue().counts(); }
EngineStats ClusterCoordinator::stats() const { return engine_of(strategy_).stats(); }
std::string ClusterCoordinator::status_json() const { return engine_of(strategy_).status_json(); }
void ClusterCoordinator::set_program_status(const std::string& json) {
  engine_of(strategy_).set_program_status(parse_json(json, "what the program says of itself"));
}

}  // namespace cairn
