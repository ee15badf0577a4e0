// One run of a plan by a member of a group: run() of core/exec/executor.h where replicas meet.
#pragma once
#include <memory>
#include <vector>

#include "collective/collective.h"
#include "core/exec/executor.h"

namespace cairn {

// Runs the plan to its end on this thread and returns its outputs. The plan is one for group.size()
// replicas. `store` exchanges the updates with the other members itself (GroupStore).
//   Errors  those of the operations, of the store and of the group. The other members' runs go on
//           until they need this one, so a member that failed must leave the group.
std::vector<Tensor> run_in_group(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                                 VariableStore& store, Collective& group, StepContext step,
                                 RunInputs inputs);

}  // namespace cairn
