// ParameterServerStrategy where a worker is several replicas.

#include "core/graph/op_def.h"
#include "core/graph/recording.h"
#include "strategy/servers/cluster_coordinator.h"
#include "strategy/servers/parameter_server_strategy.h"
#include "strategy/servers/worker_replicas.h"

namespace cairn {

RunResult ParameterServerStrategy::call_for_each_replica(
    Function& function, const std::vector<RunArgument>& arguments) {
  if (!replicas_) return Strategy::call_for_each_replica(function, arguments);
  if (records_replicas()) return recorded_part(replicas_->recording(), function, arguments);
  return run_replicas(function, arguments);
}

namespace {

// The constant that output i of `count` replicas is, on all of them; nullptr: it is computed, or
// they differ. The joined graph has equal constants once.
const Tensor* common_constant(const Graph& joined, std::size_t i, std::size_t count) {
  const std::size_t each = joined.outputs.size() / count;
  for (std::size_t replica = 1; replica < count; ++replica)
    if (joined.outputs[replica * each + i] != joined.outputs[i]) return nullptr;
  const Node& node = joined.nodes[static_cast<std::size_t>(joined.outputs[i].node)];
  return node.op->has(OpFlags::kConstant) ? &node.attributes.get<Tensor>("value") : nullptr;
}

}  // namespace

// A value per replica is an argument for each of them, anything else one for all.
RunResult ParameterServerStrategy::run_replicas(Function& function,
                                                const std::vector<RunArgument>& arguments) {
  const auto count = static_cast<std::size_t>(replicas_->count());
  std::vector<WorkerReplicas::Call> calls(count);
  for (std::size_t i = 0; i < count; ++i) {
    calls[i].place = &replica(static_cast<int>(i));
    calls[i].arguments = arguments_now(arguments, static_cast<int>(i));
  }
  std::vector<ScheduleArgument> scheduled;
  std::size_t tensors = 0;
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const auto* value = std::get_if<PerReplica>(&arguments[a]);
    const bool apart = value != nullptr && value->is_per_replica();
    for (std::size_t i = 0; i < count; ++i) {
      const Argument& argument = calls[i].arguments[a];
      const bool first = apart || i == 0;
      if (first) scheduled.push_back(scheduled_argument(argument));
      if (!std::holds_alternative<Tensor>(argument)) continue;
      tensors += first ? 1 : 0;
      calls[i].places.push_back(tensors - 1);
    }
  }
  const auto joined = replicas_->joined(function, calls, JoinedOutputs::kOfAll);
  const RemoteValue value = enqueue(joined, function.name(), scheduled);
  std::vector<Tensor> outputs = outputs_of(value);
  const std::size_t each = outputs.size() / count;
  auto names = std::make_shared<std::vector<std::string>>(
      joined->graph.output_names.begin(),
      joined->graph.output_names.begin() + static_cast<std::ptrdiff_t>(each));
  std::vector<PerReplica> values;
  for (std::size_t i = 0; i < each; ++i) {
    if (const Tensor* constant = common_constant(joined->graph, i, count)) {
      values.emplace_back(Array(*constant));
      continue;
    }
    std::vector<Array> of_replicas;
    for (std::size_t r = 0; r < count; ++r)
      of_replicas.emplace_back(std::move(outputs[r * each + i]));
    values.emplace_back(std::move(of_replicas));
  }
  return RunResult(std::move(values), std::move(names));
}

bool ParameterServerStrategy::records_replicas() const {
  return replicas_ && TraceContext::current() != nullptr;
}

std::vector<Array> ParameterServerStrategy::replicas_here(const PerReplica& value) const {
  if (!records_replicas()) return Strategy::replicas_here(value);
  const int part = replicas_->recording().part_here("reduce");
  return {value.of_replica(static_cast<std::size_t>(part))};
}

Array ParameterServerStrategy::reduce_replicas(ReduceOp op,
                                               const std::vector<Array>& values) const {
  if (!records_replicas()) return Strategy::reduce_replicas(op, values);
  return replicas_->recording().reduced(op, values.front());
}

Array ParameterServerStrategy::gather_replicas(const std::vector<Array>& values, int axis) const {
  if (!records_replicas()) return Strategy::gather_replicas(values, axis);
  return replicas_->recording().gathered(values.front(), axis);
}

std::vector<RunValue> ParameterServerStrategy::experimental_local_results(
    const PerReplica& value) const {
  if (replicas_) replicas_->recording().require_at_hand(value);
  return Strategy::experimental_local_results(value);
}

std::vector<Array> ParameterServerStrategy::all_reduce(const ReplicaContext& replica, ReduceOp op,
                                                       const std::vector<Array>& values) const {
  if (!replicas_) return Strategy::all_reduce(replica, op, values);
  return replicas_->recording().reduced(op, values);
}

PerReplica ParameterServerStrategy::merge(const ReplicaContext& replica,
                                          const ReplicaContext::MergeBody& body,
                                          const std::vector<Array>& arguments) {
  if (!replicas_) return Strategy::merge(replica, body, arguments);
  return replicas_->recording().merged(replica, body, arguments);
}

VariableChange ParameterServerStrategy::change_here(const Variable& variable,
                                                    VariableChange change) {
  return replicas_ ? replicas_->change_here(variable, std::move(change)) : change;
}

int ParameterServerStrategy::gradients_here() const {
  return replicas_ ? replicas_->gradients_here() : 1;
}

Dataset ParameterServerStrategy::cut(const Dataset& dataset, const InputOptions& options) const {
  if (!replicas_) return read_ahead(dataset, options, 1);
  const std::int64_t replicas = replicas_->count();
  const ReplicaPieces pieces = pieces_of_worker(dataset, AutoShardPolicy::kOff,
                                                options.batch_splitter, {.replicas = replicas});
  return read_ahead(pieces.dataset, options, replicas);
}

Dataset ParameterServerStrategy::in_turn(const Dataset& dataset) const {
  return replicas_ && dataset.defined() ? dataset.deal(replicas_->count(), Deal::kInTurn) : dataset;
}

}  // namespace cairn
