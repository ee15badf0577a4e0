// The StepRunner that fits a strategy.
#pragma once
#include <memory>

namespace cairn {

class StepRunner;
class Strategy;

// ClusterSteps for a strategy with parameter servers, LocalSteps for all others. The strategy
// outlives it.
//   Errors  those of ClusterCoordinator's constructor. Unimplemented: a strategy of another kind.
std::unique_ptr<StepRunner> step_runner_of(Strategy& strategy);

}  // namespace cairn
