#include "collective/group_run.h"

#include "core/exec/step.h"

namespace cairn {

// A step numbers its own all-reduces, while the group counts every call that a member makes, the
// exchanges of pushes among them. A step that is given up while all-reduces are under way leaves
// its memory to them.
std::vector<Tensor> run_in_group(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                                 VariableStore& store, Collective& group, StepContext step,
                                 RunInputs inputs) {
  step.replica = group.rank();
  step.replicas = group.size();
  Step one(plan, workspace, store, step, std::move(inputs));
  std::vector<Collective::Ticket> tickets;  // the group's, by the step's
  for (;;) {
    const Step::Next needed = one.next();
    if (const auto* pull = std::get_if<Step::Pull>(&needed)) {
      store.pull(step, pull->reads);
    } else if (const auto* push = std::get_if<Step::Push>(&needed)) {
      store.push(step, push->updates);
      ++step.push_number;
    } else if (const auto* begun = std::get_if<Step::AllReduce>(&needed)) {
      tickets.push_back(
          group.begin_all_reduce({begun->reductions.begin(), begun->reductions.end()}));
    } else if (const auto* await = std::get_if<Step::Await>(&needed)) {
      group.wait(tickets[static_cast<std::size_t>(await->ticket)]);
    } else {
      return one.outputs();
    }
  }
}

}  // namespace cairn
