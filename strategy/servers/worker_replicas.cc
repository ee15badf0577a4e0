#include "strategy/servers/worker_replicas.h"

#include <numeric>

#include "strategy/base/strategy.h"

namespace cairn {

WorkerReplicas::WorkerReplicas(Strategy& strategy, int count)
    : strategy_(strategy), count_(count), recording_(strategy, strategy, count, 0, count) {}

std::shared_ptr<const ConcreteFunction> WorkerReplicas::joined(Function& function,
                                                               const std::vector<Call>& calls,
                                                               JoinedOutputs outputs) {
  std::lock_guard hold(mutex_);
  traced_.begin(0);
  Parts parts;
  std::vector<std::vector<std::size_t>> places;
  for (const Call& call : calls) {
    const Scope open(strategy_, call.place);
    parts.push_back(function.concrete(call.arguments, strategy_));
    places.push_back(call.places);
  }
  auto& known = joined_[Key{parts, places, outputs}];
  if (!known) {
    std::vector<ReplicaPart> each;
    for (std::size_t i = 0; i < parts.size(); ++i) each.push_back({parts[i], places[i]});
    known = std::make_shared<const ConcreteFunction>(join_replicas(each, outputs));
  }
  return known;
}

std::shared_ptr<const ConcreteFunction> WorkerReplicas::called(
    Function& function, const std::vector<Argument>& arguments) {
  std::size_t tensors = 0;
  for (const Argument& argument : arguments) tensors += std::holds_alternative<Tensor>(argument);
  std::vector<std::size_t> places(tensors);
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::vector<Call> calls;
  for (const StrategyPlace& place : recording_.cross_places())
    calls.push_back({&place, arguments, places});
  return joined(function, calls, JoinedOutputs::kOfFirst);
}

// An optimizer's update is the same for all aggregations: by the sum of all replicas' gradients.
// Dense gradients come summed, rows are joined where the graphs are.
VariableChange WorkerReplicas::change_here(const Variable& variable, VariableChange change) const {
  const ContextHere context = context_here(&strategy_);
  if (context == ContextHere::kElsewhere) return change;
  if (!is_assignment(change.rule.kind)) {
    if (gradients_here() > 1 && !change.of_all_replicas) change.shares = Aggregation::kSum;
    return change;
  }
  if (context == ContextHere::kCross) return change;
  return shared_by_replicas(variable.spec(), std::move(change), count_);
}

}  // namespace cairn
