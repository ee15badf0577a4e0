#include "model/steps/runner_of.h"

#include "core/base/error.h"
#include "model/steps/cluster_steps.h"
#include "model/steps/local_steps.h"
#include "strategy/in_sync/multi_worker_mirrored_strategy.h"

namespace cairn {

std::unique_ptr<StepRunner> step_runner_of(Strategy& strategy) {
  if (auto* cluster = dynamic_cast<ParameterServerStrategy*>(&strategy))
    return std::make_unique<ClusterSteps>(*cluster);
  if (auto* local = dynamic_cast<LocalStrategy*>(&strategy))
    return std::make_unique<LocalSteps>(*local);
  throw UnimplementedError(
      "a model trains under the strategies of Cairn; this one is of another kind, under which "
      "steps "
      "are run by Strategy::run()");
}

bool writes_for_all(Strategy& strategy) {
  const auto* group = dynamic_cast<const MultiWorkerMirroredStrategy*>(&strategy);
  return group == nullptr || group->is_chief();
}

}  // namespace cairn
