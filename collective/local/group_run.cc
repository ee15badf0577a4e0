#include "collective/local/group_run.h"

#include "core/exec/step.h"
#include "core/kernels/device_group.h"

namespace cairn {
namespace {

// A step numbers its own all-reduces, while the group counts every call that a member makes, the
// exchanges of pushes among them. A step that is given up while all-reduces are under way leaves
// its memory to them.
std::vector<Tensor> run_step(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                             VariableStore& store, Collective& group, StepContext step,
                             RunInputs inputs, DeviceMember* devices) {
  step.replica = group.rank();
  step.replicas = group.size();
  Step one(plan, workspace, store, step, std::move(inputs));
  if (devices != nullptr) one.sum_on(*devices);
  std::vector<Collective::Ticket> tickets;  // the group's, by the step's
  for (;;) {
    const Step::Next needed = one.next();
    if (const auto* pull = std::get_if<Step::Pull>(&needed)) {
      store.pull(step, pull->reads);
    } else if (const auto* push = std::get_if<Step::Push>(&needed)) {
      store.push(step, push->updates);
      ++step.push_number;
    } else if (const auto* announce = std::get_if<Step::Announce>(&needed)) {
      *announce->left_out = store.announce(step, announce->updates);
    } else if (const auto* begun = std::get_if<Step::AllReduce>(&needed)) {
      tickets.push_back(
          group.begin_all_reduce({begun->reductions.begin(), begun->reductions.end()}));
    } else if (const auto* await = std::get_if<Step::Await>(&needed)) {
      group.wait(tickets[static_cast<std::size_t>(await->ticket)]);
    } else {
      if (devices != nullptr) devices->settle();
      return one.outputs();
    }
  }
}

}  // namespace

// The group is aborted first: the others, whose devices' calls then end, find the cause there.
std::vector<Tensor> run_in_group(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                                 VariableStore& store, Collective& group, StepContext step,
                                 RunInputs inputs, DeviceMember* devices) {
  try {
    return run_step(plan, workspace, store, group, step, std::move(inputs), devices);
  } catch (...) {
    if (devices == nullptr) throw;
    const ErrorParts error = error_parts(std::current_exception());
    try {
      if (error.code == Code::kAborted) group.require_well();
    } catch (...) {
      devices->abort();
      throw;
    }
    group.abort(error);
    devices->abort();
    throw;
  }
}

}  // namespace cairn
