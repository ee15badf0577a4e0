#include "strategy/base/strategy.h"

#include <algorithm>

#include "core/graph/ops.h"
#include "core/graph/recording.h"
#include "strategy/base/replica_recording.h"

namespace cairn {
namespace {

bool tracing() { return TraceContext::current() != nullptr; }

// An argument of the replica `replica`; below 0: of a call.
const Array& own_value(const PerReplica& value, int replica, std::size_t index) {
  if (replica < 0 && value.is_per_replica())
    throw InvalidArgumentError(str("call: argument ", index,
                                   " has one value per replica; pass it to run(), or reduce it"));
  return value.of_replica(replica < 0 ? 0 : static_cast<std::size_t>(replica));
}

// A dataset's elements come one per run of the traced function, through its own argument. One that
// is taken from elsewhere would have to be read now, once, and its element would be frozen into the
// function.
TraceArgument traced_argument(const RunArgument& argument, int replica, std::size_t index) {
  if (auto* iterator = std::get_if<Iterator>(&argument)) return *iterator;
  if (auto* value = std::get_if<PerReplica>(&argument)) return own_value(*value, replica, index);
  if (auto* tensor = std::get_if<Tensor>(&argument)) return Array(*tensor);
  throw InvalidArgumentError(str("run: argument ", index,
                                 " is a dataset, and a function is being traced: pass the dataset ",
                                 "to that function, and here the Iterator that it gets for it"));
}

Argument argument_now(const RunArgument& argument, int replica, std::size_t index) {
  if (auto* tensor = std::get_if<Tensor>(&argument)) return *tensor;
  if (auto* value = std::get_if<PerReplica>(&argument))
    return own_value(*value, replica, index).eval();
  if (auto* source = std::get_if<std::shared_ptr<const IteratorSource>>(&argument)) return *source;
  throw InvalidArgumentError(str("run: argument ", index,
                                 " is the Iterator of a function whose tracing is over; pass the ",
                                 "dataset itself"));
}

}  // namespace

Strategy::Strategy() = default;
Strategy::~Strategy() = default;

// ---- data ----

namespace {

void require_sense(const InputOptions& options) {
  const bool per_replica =
      options.experimental_replication_mode == InputReplicationMode::kPerReplica;
  if (options.experimental_place_dataset_on_device &&
      (!per_replica || options.experimental_fetch_to_device))
    throw InvalidArgumentError(
        "InputOptions: experimental_place_dataset_on_device wants kPerReplica, and "
        "experimental_fetch_to_device = false");
  if (options.experimental_per_replica_buffer_size < 0)
    throw InvalidArgumentError(str("InputOptions: experimental_per_replica_buffer_size is ",
                                   options.experimental_per_replica_buffer_size,
                                   ", it must be at least 0"));
  if (options.visitation == Visitation::kExactlyOnce &&
      options.auto_shard_policy == AutoShardPolicy::kOff)
    throw InvalidArgumentError(
        "InputOptions: under AutoShardPolicy::kOff every worker reads everything, which is not "
        "Visitation::kExactlyOnce; leave the policy at kAuto");
  if (per_replica)
    throw UnimplementedError(
        "InputOptions: kPerReplica, a pipeline for each replica, is not there; with kPerWorker the "
        "replicas of a process take the elements of one pipeline in turn");
}

}  // namespace

std::optional<InputContext> Strategy::input_context() const {
  return InputContext{.num_replicas_in_sync = num_replicas_in_sync()};
}

ElementSpec Strategy::distributed_spec(const Dataset& dataset, const InputOptions&) const {
  return dataset.element_spec();
}

ElementSpec Strategy::in_turn_spec(const Dataset& dataset) const { return dataset.element_spec(); }

DistributedDataset Strategy::experimental_distribute_dataset(const Dataset& dataset,
                                                             const InputOptions& options) {
  require_sense(options);
  DistributedDataset made;
  made.strategy_ = this;
  made.spec_ = distributed_spec(dataset, options);
  made.dataset_ = dataset;
  made.options_ = options;
  return made;
}

DistributedDataset Strategy::distribute_datasets_from_function(const DatasetFunction& dataset_fn,
                                                               const InputOptions& options) {
  require_sense(options);
  DistributedDataset made;
  made.strategy_ = this;
  made.function_ = dataset_fn;
  made.options_ = options;
  const std::optional<InputContext> context = input_context();
  if (!context) return made;
  made.dataset_ = dataset_fn(*context);
  if (!made.dataset_.defined())
    throw InvalidArgumentError("the dataset function returned no dataset");
  made.spec_ = in_turn_spec(made.dataset_);
  return made;
}

DistributedIterator Strategy::iterate(const DistributedDataset& dataset) {
  return {*this, iterator_of(dataset)};
}
DistributedIterator Strategy::iterate(const Dataset& dataset) {
  return iterate(experimental_distribute_dataset(dataset));
}
DistributedIterator Strategy::iterate(const DatasetFunction& dataset_fn) {
  return iterate(distribute_datasets_from_function(dataset_fn));
}

// ---- scope ----

Scope Strategy::scope() {
  if (has_strategy()) require_cross_replica("scope()");
  return Scope(variable_creator(), cross_place());
}

const ScopePlace* Strategy::cross_place() const {
  const auto* here = dynamic_cast<const StrategyPlace*>(current_scope_place());
  const bool open = here != nullptr && &here->strategy() == this && here->replica() == nullptr;
  return open ? here : &cross_;
}

void Strategy::require_cross_replica(const std::string& what) const {
  auto* place = dynamic_cast<const StrategyPlace*>(current_scope_place());
  if (place == nullptr) return;
  if (&place->strategy() != this)
    throw FailedPreconditionError(
        str("Mixing different tf.distribute.Strategy objects: ", what,
            " of one is called in the scope of another; end that scope first"));
  if (place->replica() != nullptr)
    throw FailedPreconditionError(
        str(what, " requires being in cross-replica context, and replica ",
            place->replica()->replica_id_in_sync_group(),
            " runs here: use get_replica_context().merge_call(), or, if the function need not be "
            "run on each replica, strategy.call() instead of strategy.run() for it"));
}

void Strategy::require_own_trace(const std::string& what, const Function& function) {
  if (!tracing() || &current_variable_creator() == &variable_creator()) return;
  throw FailedPreconditionError(str(
      "Mixing different tf.distribute.Strategy objects: the function being traced is not of this "
      "strategy, so ",
      what, " cannot make \"", function.name(),
      "\" a part of it; wrap both with the same strategy's function()"));
}

const ReplicaContext& Strategy::replica(int id) {
  // Not in the constructor, where the number of replicas is not known yet: a virtual function of
  // the derived class returns it.
  std::call_once(replicas_made_, [this] {
    for (int i = 0; i < num_replicas_in_sync(); ++i) replicas_.emplace_back(*this, i);
  });
  return replicas_.at(static_cast<std::size_t>(id));
}

// ---- functions ----

RunResult Strategy::run(Function& function, const std::vector<RunArgument>& arguments) {
  require_own_trace("run", function);
  if (has_strategy()) require_cross_replica("run()");
  const Scope open = scope();
  // Without a strategy the scope above is that of the default one, which has changed nothing.
  require_cross_replica("run()");
  return call_for_each_replica(function, arguments);
}

RunResult Strategy::call(Function& function, const std::vector<RunArgument>& arguments) {
  require_own_trace("call", function);
  std::vector<StepOutputs> outputs;
  if (tracing()) {
    outputs.push_back(run_here(function, arguments, kNoReplica));
  } else {
    const Scope open = scope();
    outputs.push_back(run_here(function, arguments, kNoReplica));
  }
  return regrouped(std::move(outputs));
}

RunResult Strategy::call_for_each_replica(Function& function,
                                          const std::vector<RunArgument>& arguments) {
  std::vector<StepOutputs> outputs;
  for (int i = 0; i < num_replicas_in_sync(); ++i) {
    const Scope open = replica_scope(i);
    outputs.push_back(run_here(function, arguments, i));
  }
  return regrouped(std::move(outputs));
}

Strategy::StepOutputs Strategy::run_here(Function& function,
                                         const std::vector<RunArgument>& arguments, int replica) {
  if (tracing()) return recorded(function, arguments, replica);
  return run_step(function, arguments_now(arguments, replica));
}

std::vector<Argument> Strategy::arguments_now(const std::vector<RunArgument>& arguments,
                                              int replica) {
  std::vector<Argument> now;
  for (const RunArgument& argument : arguments)
    now.push_back(argument_now(argument, replica, now.size()));
  return now;
}

Strategy::StepOutputs Strategy::recorded(Function& function,
                                         const std::vector<RunArgument>& arguments, int replica) {
  std::vector<TraceArgument> traced;
  for (const RunArgument& argument : arguments)
    traced.push_back(traced_argument(argument, replica, traced.size()));
  std::vector<Array> values;
  auto names = std::make_shared<std::vector<std::string>>();
  for (auto& [name, value] : function.inlined(traced)) {
    names->push_back(name);
    values.push_back(std::move(value));
  }
  return {std::move(values), std::move(names)};
}

RunResult Strategy::recorded_part(const ReplicaRecording& recording, Function& function,
                                  const std::vector<RunArgument>& arguments) {
  const int part = recording.part_here("run");
  const Scope open = replica_scope(part);
  StepOutputs own = recorded(function, arguments, part);
  std::vector<PerReplica> values;
  for (Array& value : own.values) values.push_back(recording.spread(std::move(value), part));
  return RunResult(std::move(values), std::move(own.names));
}

// Outputs come by replica and are given back by place: one value for each output, with those of all
// replicas in it.
RunResult Strategy::regrouped(std::vector<StepOutputs> of_replicas) {
  const std::size_t count = of_replicas.front().values.size();
  for (const StepOutputs& each : of_replicas)
    if (each.values.size() != count)
      throw InvalidArgumentError(str("replica 0 returns ", count, " values, another ",
                                     each.values.size(), "; all must return as many"));
  std::vector<PerReplica> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (of_replicas.size() == 1) {
      values.emplace_back(std::move(of_replicas.front().values[i]));
      continue;
    }
    std::vector<Array> each;
    for (StepOutputs& outputs : of_replicas) each.push_back(std::move(outputs.values[i]));
    values.emplace_back(std::move(each));
  }
  return RunResult(std::move(values), std::move(of_replicas.front().names));
}

// ---- what replicas meet in ----

// One replica alone has its sum and its mean already. In a traced function the effect is recorded
// all the same, so that the graph is the one that several replicas would run; but for a mean of
// integers, which the effect does not know.
std::vector<Array> Strategy::all_reduce(const ReplicaContext& replica, ReduceOp op,
                                        const std::vector<Array>& values) const {
  if (replica.num_replicas_in_sync() > 1)
    throw UnimplementedError(
        "all_reduce: this strategy runs its replicas one after another, so that they cannot meet");
  if (!tracing() || values.empty()) return values;
  const bool known =
      op == ReduceOp::kSum || std::all_of(values.begin(), values.end(), [](const Array& value) {
        return value.dtype() == DType::kFloat32;
      });
  return known ? cairn::all_reduce(op, values) : values;
}

PerReplica Strategy::merge(const ReplicaContext& replica, const ReplicaContext::MergeBody& body,
                           const std::vector<Array>& arguments) {
  if (replica.num_replicas_in_sync() > 1)
    throw UnimplementedError(
        "merge_call: this strategy runs its replicas one after another, so that they cannot meet");
  const Scope open(variable_creator(), &cross_);
  return body(*this, {arguments.begin(), arguments.end()});
}

}  // namespace cairn
