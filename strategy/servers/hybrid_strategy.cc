#include "strategy/servers/hybrid_strategy.h"

#include <utility>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_host.h"
#include "core/graph/ops.h"

namespace cairn {
namespace {

ParameterServerOptions in_step(ParameterServerOptions options) {
  if (options.consistency.in_rounds())
    throw InvalidArgumentError(
        str("HybridStrategy: what is mirrored is in step anyway, and tables are asynchronous or "
            "bounded, not ",
            options.consistency.text(), "; with ParameterServerStrategy tables can be in step"));
  if (options.devices.size() > 1)
    throw InvalidArgumentError(str("HybridStrategy: a worker is one replica, and ",
                                   options.devices.size(),
                                   " devices are named; start more workers instead"));
  options.consistency = HybridConsistency::make();
  return options;
}

}  // namespace

HybridStrategy::HybridStrategy(const ClusterResolver& resolver, ParameterServerOptions options)
    : ParameterServerStrategy(resolver, in_step(std::move(options))) {}

HybridStrategy::HybridStrategy(std::unique_ptr<EngineHost> host)
    : ParameterServerStrategy(std::move(host)) {
  if (!HybridConsistency::is(this->host().engine().options().consistency))
    throw InvalidArgumentError("HybridStrategy on an engine that was started for another one");
}

// The workers' copies would never see an update that goes straight to the ps, as one of rows does.
void HybridStrategy::settle_kind(const VariableSpec& spec, bool table) {
  std::lock_guard hold(mutex_);
  if ((table ? mirrored_ : tables_).contains(spec.name))
    throw InvalidArgumentError(
        str("the variable \"", spec.name, "\" gets a gradient of ", table ? "rows" : "the whole",
            " here, and got one of ", table ? "the whole" : "rows",
            " before: under HybridStrategy a table is only looked up by ids (nn::Embedding), and a "
            "mirrored variable never is; use two variables, or ParameterServerStrategy"));
  (table ? tables_ : mirrored_).insert(spec.name);
}

// Every member brings the same change of what is mirrored, so that one of them speaks for all. An
// optimizer counts a step, which is all members', once.
VariableChange HybridStrategy::change_here(const Variable& variable, VariableChange change) {
  if (is_assignment(change.rule.kind)) {
    change.mirrored = change.rule == counter_rule() && variable.spec().dtype != DType::kFloat32;
    return change;
  }
  settle_kind(variable.spec(), change.sparse);
  if (change.sparse) return change;
  if (!change.of_all_replicas && num_workers() > 1)
    change.value = cairn::all_reduce(ReduceOp::kSum, change.value);
  change.mirrored = true;
  return change;
}

}  // namespace cairn
