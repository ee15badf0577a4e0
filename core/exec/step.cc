// Driving a run: compute, pull, compute, ..., push.
#include "core/exec/step.h"

#include "core/graph/op_def.h"

namespace cairn {

Step::Step(std::shared_ptr<const Plan> plan, Workspace& workspace, UpdatePlaces& places,
           const StepContext& context, RunInputs inputs)
    : plan_(std::move(plan)),
      space_(workspace.state()),
      places_(places),
      context_(context),
      inputs_(std::move(inputs)) {
  CAIRN_CHECK(!space_.busy, "a workspace serves one run at a time");
  space_.busy = true;
}

Step::~Step() {
  if (!finished_ && bound_ != nullptr) {
    let_go();
    if (pushed_) space_.memory = nullptr;  // a push may still be sending from it
  }
  space_.busy = false;
}

Step::Next Step::next() {
  CAIRN_CHECK(!finished_, "a step that has finished has nothing next");
  if (bound_ == nullptr) {
    bind();
  } else {
    if (!plan_->waves[wave_].reads.empty()) after_pull();
    ++wave_;
  }
  for (; wave_ < plan_->waves.size(); ++wave_) {
    compute();
    // Nothing leaves after a check has failed: what it was to guard may be in it.
    raise_failed_check();
    if (!plan_->waves[wave_].reads.empty()) return Pull{reads()};
    if (!plan_->waves[wave_].updates.empty()) return Push{updates()};
  }
  collect_outputs();
  let_go();
  finished_ = true;
  return Finished{};
}

// The store wants its memory back.
void Step::let_go() {
  for (BoundWave& wave : bound_->waves)
    for (Read& read : wave.reads) read.value = {};
  space_.updates.clear();
  placed_.clear();
}

std::vector<Tensor> run(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                        VariableStore& store, const StepContext& step,
                        std::vector<Tensor> arguments, std::vector<std::vector<Element>> elements) {
  Step one(plan, workspace, store, step, {std::move(arguments), std::move(elements)});
  StepContext context = step;
  for (;;) {
    const Step::Next needed = one.next();
    if (const auto* pull = std::get_if<Step::Pull>(&needed)) {
      store.pull(context, pull->reads);
    } else if (const auto* push = std::get_if<Step::Push>(&needed)) {
      store.push(context, push->updates);
      ++context.push_number;
    } else {
      return one.outputs();
    }
  }
}

std::vector<Tensor> run_without_variables(const std::shared_ptr<const Plan>& plan,
                                          Workspace& workspace, const StepContext& step,
                                          RunInputs inputs) {
  UpdatePlaces nowhere;
  Step one(plan, workspace, nowhere, step, std::move(inputs));
  if (!std::holds_alternative<Step::Finished>(one.next()))
    throw InternalError("a graph that is run without variables reads or updates one");
  return one.outputs();
}

}  // namespace cairn
