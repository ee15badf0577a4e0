// Answers by a strategy's kind for a training loop: the StepRunner that fits it, and the process
// that writes files.
#pragma once
#include <memory>

namespace cairn {

class StepRunner;
class Strategy;

// ClusterSteps for a strategy with parameter servers, LocalSteps for all others. The strategy
// outlives it.
//   Errors  those of ClusterCoordinator's constructor. Unimplemented: a strategy of another kind.
std::unique_ptr<StepRunner> step_runner_of(Strategy& strategy);

// Whether this process writes the files of all that train together: it is the chief, or alone.
bool writes_for_all(Strategy& strategy);

}  // namespace cairn
