// One run of a plan by a member of a group: run() of core/exec/executor.h where replicas meet.
#pragma once
#include <memory>
#include <vector>

#include "collective/base/collective.h"
#include "core/exec/executor.h"

namespace cairn {

class DeviceMember;  // core/kernels/device_group.h

// Runs the plan to its end on this thread and returns its outputs. The plan is one for group.size()
// replicas. `store` exchanges the updates with the other members itself (GroupStore).
//   devices  this replica's member of a group of the devices that the replicas compute on, which
//            then sum what the plan all-reduces; in `group` the members only wait for one another.
//            When the run ends, they have summed it, if they are those of several processes.
//            Null: it is summed in the host's memory. After an error it is of no more use.
//   Errors  those of the operations, of the store and of the group. The other members' runs go on
//           until they need this one, so a member that failed must leave the group.
std::vector<Tensor> run_in_group(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                                 VariableStore& store, Collective& group, StepContext step,
                                 RunInputs inputs, DeviceMember* devices = nullptr);

}  // namespace cairn
