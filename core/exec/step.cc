// Driving a run: compute, pull, compute, ..., push.
#include "core/exec/step.h"

#include "core/graph/op_def.h"

namespace cairn {

// Claims the workspace until the step ends: two runs at a time would overwrite each other's values.
Step::Step(std::shared_ptr<const Plan> plan, Workspace& workspace, UpdatePlaces& places,
           const StepContext& context, RunInputs inputs)
    : plan_(std::move(plan)),
      space_(workspace.state()),
      places_(places),
      context_(context),
      inputs_(std::move(inputs)) {
  if (plan_->all_reduces && context_.replicas != plan_->options.replicas)
    throw InvalidArgumentError(str("a step of ", context_.replicas,
                                   " replicas, by a plan whose all-reduces are of ",
                                   plan_->options.replicas, ": see PlanOptions::replicas"));
  CAIRN_CHECK(!space_.busy, "a workspace serves one run at a time");
  space_.busy = true;
}

Step::~Step() {
  if (!finished_ && bound_ != nullptr) {
    let_go();
    // a push may still be sending from it, other replicas may still be writing to it
    if (pushed_ || tickets_begun_ > tickets_awaited_) space_.memory = nullptr;
  }
  space_.busy = false;
}

// The run stands still between two calls, at a wave whose request was handed out: the next call
// begins with the answer to it. A wave without a request is passed in the same call.
Step::Next Step::next() {
  CAIRN_CHECK(!finished_, "a step that has finished has nothing next");
  const DeviceStep mark(space_.device, context_.global_step);
  if (bound_ == nullptr) {
    bind();
    if (run_recorded()) return finish();
  } else {
    if (!plan_->waves[wave_].reads.empty()) after_pull();
    // One that another replica aborted is not over: its sums may still be written to.
    for (const std::int32_t awaited = plan_->waves[wave_].awaited; tickets_awaited_ <= awaited;
         ++tickets_awaited_)
      take_in_reduced(tickets_awaited_);
    if (places_.wants_told() && !plan_->waves[wave_].updates.empty()) after_push();
    ++wave_;
  }
  for (; wave_ < plan_->waves.size(); ++wave_) {
    compute();
    if (!space_.on_host) bring_what_host_reads();
    if (failed_) describe_failed_check();
    const Wave& wave = plan_->waves[wave_];
    if (!wave.reads.empty())
      if (const std::span<Read> asked = reads(); !asked.empty()) return Pull{asked};
    if (!wave.reductions.empty()) return AllReduce{tickets_begun_++, reductions()};
    if (wave.awaited >= 0) return Await{wave.awaited};
    if (!wave.updates.empty())
      if (const std::span<Update> all = updates(); !all.empty()) return Push{all};
  }
  if (failed_) raise_failed_check();
  return finish();
}

Step::Next Step::finish() {
  if (outputs_.empty()) collect_outputs();
  prepare_later();
  wait_for_copies();
  let_go();
  finished_ = true;
  return Finished{};
}

// The store wants its memory back.
void Step::let_go() {
  for (BoundWave& wave : bound_->waves) {
    for (Read& read : wave.reads) read.value = {};
    for (Reduction& reduction : wave.reductions) reduction = {};
  }
  space_.updates.clear();
  space_.host.clear();
  placed_.clear();
}

namespace {

FailedPreconditionError no_collective(const StepContext& step) {
  return FailedPreconditionError(str("the function all-reduces over ", step.replicas,
                                     " replicas, and is run where there is no collective"));
}

}  // namespace

std::vector<Tensor> run(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                        VariableStore& store, const StepContext& step,
                        std::vector<Tensor> arguments, std::vector<std::vector<Element>> elements) {
  return run(plan, workspace, store, step, {std::move(arguments), std::move(elements)});
}

std::vector<Tensor> run(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                        VariableStore& store, const StepContext& step, RunInputs inputs) {
  Step one(plan, workspace, store, step, std::move(inputs));
  // Each push of a run has its number, as on a lane.
  StepContext context = step;
  for (;;) {
    const Step::Next needed = one.next();
    if (const auto* pull = std::get_if<Step::Pull>(&needed)) {
      store.pull(context, pull->reads);
    } else if (const auto* push = std::get_if<Step::Push>(&needed)) {
      store.push(context, push->updates);
      ++context.push_number;
    } else if (std::holds_alternative<Step::Finished>(needed)) {
      return one.outputs();
    } else {
      throw no_collective(step);
    }
  }
}

std::vector<Tensor> run_without_variables(const std::shared_ptr<const Plan>& plan,
                                          Workspace& workspace, const StepContext& step,
                                          RunInputs inputs) {
  UpdatePlaces nowhere;
  Step one(plan, workspace, nowhere, step, std::move(inputs));
  const Step::Next needed = one.next();
  if (std::holds_alternative<Step::AllReduce>(needed)) throw no_collective(step);
  if (!std::holds_alternative<Step::Finished>(needed))
    throw InternalError("a graph that is run without variables reads or updates one");
  return one.outputs();
}

}  // namespace cairn
