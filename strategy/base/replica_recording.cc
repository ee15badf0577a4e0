#include "strategy/base/replica_recording.h"

#include <algorithm>

#include "core/graph/ops.h"
#include "core/graph/recording.h"
#include "strategy/base/strategy.h"

namespace cairn {
namespace {

bool is_traced() { return TraceContext::current() != nullptr; }

bool all_float(const std::vector<Array>& values) {
  return std::ranges::all_of(values,
                             [](const Array& value) { return value.dtype() == DType::kFloat32; });
}

}  // namespace

const StrategyPlace* place_here() {
  return dynamic_cast<const StrategyPlace*>(current_scope_place());
}

ContextHere context_here(const Strategy* strategy) {
  const StrategyPlace* place = place_here();
  if (place == nullptr) return ContextHere::kCross;
  if (&place->strategy() != strategy) return ContextHere::kElsewhere;
  return place->replica() != nullptr ? ContextHere::kReplica : ContextHere::kCross;
}

int gradients_of(ContextHere context, int replicas) {
  if (context == ContextHere::kElsewhere || replicas == 1) return 1;
  if (context == ContextHere::kReplica) return replicas;
  throw FailedPreconditionError(
      "an optimizer is applied in cross-replica context, where no replica has a gradient of its "
      "own: do it in a function that Strategy::run runs");
}

VariableChange shared_by_replicas(const VariableSpec& spec, VariableChange change, int replicas) {
  if (spec.aggregation == Aggregation::kNone)
    throw InvalidArgumentError(
        str("You must specify an aggregation method to update the variable \"", spec.name,
            "\" in replica context: its ", replicas, " replicas have one variable between them"));
  if (spec.aggregation == Aggregation::kMean && spec.dtype != DType::kFloat32)
    throw InvalidArgumentError(str("the variable \"", spec.name, "\" is ", dtype_name(spec.dtype),
                                   ", and the mean of the replicas' values is float32"));
  change.shares = spec.aggregation;
  return change;
}

// ---- variables made in traces ----

int TracedVariables::part_here() {
  const StrategyPlace* place = place_here();
  return place != nullptr && is_traced() ? place->part() : StrategyPlace::kNoPart;
}

bool TracedVariables::given_here() const {
  const int part = part_here();
  return part != StrategyPlace::kNoPart && part != first_;
}

Variable TracedVariables::given(const VariableSpec& spec) {
  const int part = part_here();
  Made& made = made_[spec.name];
  std::size_t& next = made.claimed[part];
  if (next == made.variables.size())
    throw InvalidArgumentError(str("replica ", part, " makes the variable \"", spec.name,
                                   "\", and replica ", first_,
                                   " does not: all replicas must make the same"));
  const Variable& same = made.variables[next++];
  if (same.spec().dtype != spec.dtype || same.shape() != spec.shape)
    throw InvalidArgumentError(str("replica ", part, " makes the variable \"", spec.name, "\" as ",
                                   TensorType{spec.dtype, spec.shape}.to_string(), ", and replica ",
                                   first_, " as ",
                                   TensorType{same.spec().dtype, same.shape()}.to_string()));
  return same;
}

// ---- recording ----

ReplicaRecording::ReplicaRecording(Strategy& strategy, VariableCreator& creator, int replicas,
                                   int first, int here)
    : strategy_(strategy), creator_(creator), replicas_(replicas), first_(first) {
  for (int i = 0; i < here; ++i) cross_places_.emplace_back(strategy, nullptr, first + i);
}

int ReplicaRecording::part_here(const char* what) const {
  const StrategyPlace* place = place_here();
  if (place != nullptr && &place->strategy() == &strategy_ &&
      place->part() != StrategyPlace::kNoPart)
    return place->part();
  throw FailedPreconditionError(
      str(what,
          " is recorded into a function that this strategy does not run: pass that function "
          "to the strategy's run() or call()"));
}

PerReplica ReplicaRecording::spread(Array own, int part) const {
  std::vector<Array> values(static_cast<std::size_t>(replicas_));
  values[static_cast<std::size_t>(part)] = std::move(own);
  return PerReplica(std::move(values));
}

// The effect knows no mean of integers, whose sum is divided instead.
Array ReplicaRecording::reduced(ReduceOp op, const Array& own) const {
  if (op == ReduceOp::kSum || own.dtype() == DType::kFloat32) return cairn::all_reduce(op, own);
  return cast(cairn::all_reduce(ReduceOp::kSum, own), DType::kFloat32) /
         Array(static_cast<float>(replicas_));
}

std::vector<Array> ReplicaRecording::reduced(ReduceOp op, const std::vector<Array>& own) const {
  if (own.empty()) return own;
  if (op == ReduceOp::kSum || all_float(own)) return cairn::all_reduce(op, own);
  std::vector<Array> all;
  for (const Array& value : own) all.push_back(reduced(op, value));
  return all;
}

// Each replica adds its value, with zeros in the others' places. So their sizes must be equal when
// it runs; the replicas' meeting says if they are not.
Array ReplicaRecording::gathered(const Array& own, int axis) const {
  const DType dtype = own.dtype();
  if (dtype != DType::kFloat32 && dtype != DType::kInt32 && dtype != DType::kInt64)
    throw UnimplementedError(str("gather of ", dtype_name(dtype),
                                 " in a function being traced: do it on what the run returns"));
  std::vector<Array> parts(static_cast<std::size_t>(replicas_), zeros_like(own));
  parts[static_cast<std::size_t>(part_here("gather"))] = own;
  return cairn::all_reduce(ReduceOp::kSum, concat(parts, axis));
}

// The reference calls the body once for all replicas; here each replica calls it for itself. The
// arguments are values per replica of which a replica has its own, so that reducing them is a
// meeting, and the rest is computed alike everywhere.
PerReplica ReplicaRecording::merged(const ReplicaContext& replica,
                                    const ReplicaContext::MergeBody& body,
                                    const std::vector<Array>& arguments) const {
  const int part = replica.replica_id_in_sync_group();
  const Scope open(creator_, &cross_places_[static_cast<std::size_t>(part - first_)]);
  std::vector<PerReplica> values;
  for (const Array& own : arguments) values.push_back(spread(own, part));
  return body(strategy_, values);
}

void ReplicaRecording::require_at_hand(const PerReplica& value) const {
  if (is_traced() && value.is_per_replica())
    throw UnimplementedError(
        "experimental_local_results in a function being traced, where each replica has its own "
        "value alone: reduce or gather it there, or return it from run()");
}

}  // namespace cairn
