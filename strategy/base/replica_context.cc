#include "strategy/base/replica_context.h"

#include "strategy/base/strategy.h"

namespace cairn {
namespace {

// nullptr: no strategy's scope is open. Scopes of creators that are no strategies (core's own, in
// programs that use it alone) have no place of ours, and count as none.
const StrategyPlace* current_place() {
  return dynamic_cast<const StrategyPlace*>(current_scope_place());
}

}  // namespace

Strategy& get_strategy() {
  const StrategyPlace* place = current_place();
  return place != nullptr ? place->strategy() : default_strategy();
}

bool has_strategy() {
  const StrategyPlace* place = current_place();
  return place != nullptr && &place->strategy() != &default_strategy();
}

bool in_cross_replica_context() {
  const StrategyPlace* place = current_place();
  return place != nullptr && place->replica() == nullptr;
}

const ReplicaContext& get_replica_context() {
  const StrategyPlace* place = current_place();
  if (place == nullptr) return default_strategy().replica(0);
  if (place->replica() == nullptr)
    throw FailedPreconditionError(
        "get_replica_context: this is cross-replica context, where no replica runs; a function "
        "that "
        "Strategy::run runs has one (in_cross_replica_context() tells)");
  return *place->replica();
}

bool StrategyPlace::takes_elements() const {
  return replica_ != nullptr || strategy_.num_replicas_in_sync() == 1;
}

int ReplicaContext::num_replicas_in_sync() const { return strategy().num_replicas_in_sync(); }

// The order of the checks is the reference's: cross-replica context first, since there no replica's
// context is right.
void ReplicaContext::require_here() const {
  if (in_cross_replica_context())
    throw FailedPreconditionError(
        "a replica's all_reduce() and merge_call() belong into a function that Strategy::run runs, "
        "and not into one that merge_call() calls: this is cross-replica context");
  const ReplicaContext& here = get_replica_context();
  if (&here == this) return;
  throw FailedPreconditionError(&here.strategy() == &strategy()
                                    ? str("mismatching ReplicaContext: that of replica ", id_,
                                          " is used where replica ", here.id_, " runs")
                                    : str("mismatching tf.distribute.Strategy objects: the "
                                          "ReplicaContext of one is used where "
                                          "a replica of another runs"));
}

Array ReplicaContext::all_reduce(ReduceOp op, const Array& value) const {
  return all_reduce(op, std::vector<Array>{value}).front();
}

std::vector<Array> ReplicaContext::all_reduce(ReduceOp op, const std::vector<Array>& values) const {
  require_here();
  for (const Array& value : values)
    if (!value.defined()) throw InvalidArgumentError("all_reduce: an Array has no value");
  return strategy().all_reduce(*this, op, values);
}

Array ReplicaContext::merge(const MergeBody& body, const std::vector<Array>& arguments) const {
  require_here();
  const PerReplica merged = strategy().merge(*this, body, arguments);
  return merged.of_replica(static_cast<std::size_t>(id_));
}

}  // namespace cairn
