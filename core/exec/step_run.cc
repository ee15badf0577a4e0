// Driving a run: compute, pull, compute, ..., push.
#include "core/exec/step_run.h"

#include "core/graph/op_def.h"

namespace cairn {

StepRun::StepRun(std::shared_ptr<const Plan> plan, Workspace& workspace, VariableStore& store,
                 const StepContext& step, std::vector<Tensor> arguments,
                 std::vector<std::vector<Element>> elements)
    : state_(std::make_unique<State>(std::move(plan), workspace, store, step,
                                     RunInputs{std::move(arguments), std::move(elements)})) {}
StepRun::~StepRun() = default;

void StepRun::start(Done done, Yield yield) { state_->start(std::move(done), std::move(yield)); }
void StepRun::before_push(Yield gate) { state_->gate = std::move(gate); }
const std::vector<Tensor>& StepRun::outputs() const { return state_->outputs; }

StepMachine::StepMachine(std::shared_ptr<const Plan> plan, Workspace& workspace,
                         VariableStore& store, const StepContext& step, RunInputs inputs)
    : plan_(std::move(plan)),
      space_(workspace.state()),
      store_(store),
      step_(step),
      inputs_(std::move(inputs)) {
  CAIRN_CHECK(!space_.busy, "a workspace serves one run at a time");
  space_.busy = true;
}

StepMachine::~StepMachine() { space_.busy = false; }

void StepMachine::start(Done done, Yield yield) {
  CAIRN_CHECK(stage_ == Stage::kBind && !done_, "a run is started once");
  done_ = std::move(done);
  yield_ = std::move(yield);
  wait_for(yield_);
  drive();
}

void StepMachine::drive() {
  if (driving_) {
    again_ = true;
    return;
  }
  driving_ = true;
  while (again_) {
    again_ = false;
    try {
      advance();
    } catch (...) {
      finish(std::current_exception());
    }
  }
  driving_ = false;
  if (stage_ != Stage::kFinished || !done_) return;
  Done done = std::move(done_);
  done_ = nullptr;
  done(error_);  // the last thing: the run may be gone when it returns
}

// Lets the hook decide when to go on; none: at once.
void StepMachine::wait_for(const Yield& hook) {
  again_ = !hook;
  if (!hook) return;
  bool nested = std::exchange(driving_, true);  // a hook that goes on at once only leaves its mark
  hook([this] {
    again_ = true;
    if (!driving_) drive();
  });
  driving_ = nested;
}

Done StepMachine::resume_from_store() {
  return [this](std::exception_ptr error) {
    if (error)
      finish(error);
    else
      stage_ = Stage::kAfterCall;
    again_ = true;
    drive();
  };
}

void StepMachine::finish(std::exception_ptr error) {
  error_ = std::move(error);
  stage_ = Stage::kFinished;
  if (error_) outputs.clear();
  if (bound_ == nullptr) return;
  for (BoundWave& wave : bound_->waves)
    for (Read& read : wave.reads) read.value = {};  // the store wants its memory back
  space_.updates.clear();
  placed_.clear();
  if (error_ && pushed_) space_.memory = nullptr;  // the store may still be sending from it
}

void StepMachine::advance() {
  switch (stage_) {
    case Stage::kBind:
      bind();
      stage_ = Stage::kCompute;
      again_ = true;
      break;
    case Stage::kCompute: {
      compute();
      stage_ = Stage::kCall;
      bool first_push = !plan_->waves[wave_].updates.empty() && !pushed_;
      if (first_push) raise_failed_check();
      if (first_push)
        wait_for(gate);
      else
        again_ = true;
      break;
    }
    case Stage::kCall:
      raise_failed_check();
      if (!plan_->waves[wave_].reads.empty()) {
        pull();
      } else if (!plan_->waves[wave_].updates.empty()) {
        push();
      } else {
        stage_ = Stage::kAfterCall;
        again_ = true;
      }
      break;
    case Stage::kAfterCall:
      if (!plan_->waves[wave_].reads.empty()) after_pull();
      if (++wave_ < plan_->waves.size()) {
        stage_ = Stage::kCompute;
        wait_for(yield_);
      } else {
        collect_outputs();
        finish(nullptr);
      }
      break;
    case Stage::kFinished: break;
  }
}

std::vector<Tensor> run(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                        VariableStore& store, const StepContext& step,
                        std::vector<Tensor> arguments, std::vector<std::vector<Element>> elements) {
  StepRun one(plan, workspace, store, step, std::move(arguments), std::move(elements));
  bool finished = false;
  std::exception_ptr error;
  one.start([&](std::exception_ptr e) {
    finished = true;
    error = std::move(e);
  });
  CAIRN_CHECK(finished, "run() wants a store that answers inside the call");
  if (error) std::rethrow_exception(error);
  return one.outputs();
}

}  // namespace cairn
