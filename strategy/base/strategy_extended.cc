#include "strategy/base/strategy_extended.h"

#include <algorithm>

#include "core/base/error.h"
#include "strategy/base/device_names.h"
#include "strategy/base/strategy.h"

namespace cairn {

std::vector<std::string> StrategyExtended::worker_devices() const {
  return strategy_.worker_devices();
}

std::vector<std::string> StrategyExtended::parameter_devices() const {
  return strategy_.parameter_devices();
}

bool StrategyExtended::variable_created_in_scope(const Variable& variable) const {
  return variable.defined() && variable.runtime() != nullptr &&
         variable.runtime() == strategy_.eager_runtime();
}

void StrategyExtended::require_own(const char* what, const Variable& variable) const {
  if (!variable_created_in_scope(variable))
    throw InvalidArgumentError(str(what, ": the variable \"",
                                   variable.defined() ? variable.name() : "",
                                   "\" was not made by this strategy: pass one that was made in "
                                   "its scope"));
}

Colocation StrategyExtended::colocate_vars_with(const Variable& variable) const {
  require_own("colocate_vars_with", variable);
  return Colocation(strategy_.colocated_, variable.name());
}

// Other names than those of the strategy's own devices are verified too: a value may be wanted on a
// device that has neither a replica nor variables.
void StrategyExtended::require_destinations(const Destinations& destinations) const {
  if (destinations.variable_.defined()) require_own("reduce_to", destinations.variable_);
  if (destinations.devices_.empty()) return;
  std::vector<std::string> known = worker_devices();
  for (std::string& device : parameter_devices()) known.push_back(std::move(device));
  for (const std::string& device : destinations.devices_)
    if (std::find(known.begin(), known.end(), device) == known.end()) device_named(device);
}

RunValue StrategyExtended::reduce_to(ReduceOp op, const PerReplica& value,
                                     const Destinations& destinations) const {
  require_destinations(destinations);
  return strategy_.reduce(op, value);
}

std::vector<RunValue> StrategyExtended::batch_reduce_to(
    ReduceOp op,
    const std::vector<std::pair<PerReplica, Destinations>>& value_destination_pairs) const {
  std::vector<RunValue> reduced;
  for (const auto& [value, destinations] : value_destination_pairs)
    reduced.push_back(reduce_to(op, value, destinations));
  return reduced;
}

std::vector<Array> StrategyExtended::update_arguments(
    const Variable& variable, const std::vector<PerReplica>& arguments) const {
  strategy_.require_cross_replica("extended().update()");
  require_own("update", variable);
  std::vector<Array> own;
  for (const PerReplica& argument : arguments) {
    if (argument.is_per_replica())
      throw InvalidArgumentError(str(
          "update: argument ", own.size(), " of the change of \"", variable.name(),
          "\" has one value per replica, and all copies take the same change: reduce it first"));
    own.push_back(argument);
  }
  return own;
}

Scope StrategyExtended::update_scope() const { return strategy_.scope(); }

}  // namespace cairn
