// Driving a run: compute, pull, compute, ..., push.
#include "core/exec/step.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/disk/trace.h"
#include "core/exec/device_step.h"
#include "core/exec/numeric_checks.h"
#include "core/exec/plan.h"
#include "core/exec/run_values.h"
#include "core/exec/step_reads.h"
#include "core/exec/step_reductions.h"
#include "core/exec/step_updates.h"
#include "core/exec/workspace.h"
#include "core/graph/op_def.h"

namespace cairn {

// The parts of a step, and where it stands: at a wave whose request was handed out.
class Step::Run {
 public:
  Run(const std::shared_ptr<const Plan>& plan, Workspace::State& space, StepMemory& memory,
      const StepContext& context, RunInputs&& inputs)
      : space_(space),
        memory_(memory),
        values_(plan, space, memory, context, std::move(inputs)),
        device_(space.rows != nullptr ? std::make_unique<DeviceStep>(values_) : nullptr),
        checks_(values_, device_.get()),
        reads_(values_, checks_, device_.get()),
        updates_(values_, checks_, memory, device_.get()),
        reductions_(values_, checks_) {
    CAIRN_CHECK(!space_.busy, "a workspace serves one run at a time");
    space_.busy = true;
  }
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Next next();
  const RunValues& values() const { return values_; }
  StepReductions& reductions() { return reductions_; }
  bool computes_next() const { return !values_.is_bound() || wave_ + 1 < waves().size(); }
  const std::vector<Tensor>& outputs() const { return outputs_; }

 private:
  const std::vector<Wave>& waves() const { return values_.plan().waves; }
  BoundWave& bound() const { return values_.bound().waves[wave_]; }
  bool run_recorded();
  std::optional<Next> answered();
  std::optional<Next> change();
  std::optional<Next> push();
  void compute(std::size_t wave);
  void run_instruction(const Instruction& instruction);
  void bring_what_host_reads();
  Next finish();
  void collect_outputs();

  Workspace::State& space_;
  StepMemory& memory_;
  RunValues values_;
  const std::unique_ptr<DeviceStep> device_;  // null: the device keeps no variables
  NumericChecks checks_;
  StepReads reads_;
  StepUpdates updates_;
  StepReductions reductions_;
  std::size_t wave_ = 0;
  std::vector<bool> left_out_;  // by announced update: whether to leave it out
  bool announced_ = false;      // of this wave, and not answered yet
  bool pushed_ = false, finished_ = false;
  std::vector<Tensor> outputs_;
};

Step::Run::~Run() {
  if (!finished_ && values_.is_bound()) {
    values_.let_go();
    // a push may still be sending from it, other replicas may still be writing to it
    if (pushed_ || reductions_.under_way()) space_.memory = nullptr;
  }
  space_.busy = false;
}

// The run stands still between two calls, at a wave whose request was handed out: the next call
// begins with the answer to it. A wave without a request is passed in the same call.
Step::Next Step::Run::next() {
  CAIRN_CHECK(!finished_, "a step that has finished has nothing next");
  const DeviceStepScope scope(space_.device, values_.context().global_step);
  if (!values_.is_bound()) {
    values_.bind();
    if (device_ != nullptr) device_->reads.begin(memory_.lender());
    if (run_recorded()) {
      wave_ = waves().size();
      return finish();
    }
  } else {
    if (std::optional<Next> more = answered()) return *more;
    ++wave_;
  }
  for (; wave_ < waves().size(); ++wave_) {
    const Wave& wave = waves()[wave_];
    compute(wave_);
    if (!space_.on_host) bring_what_host_reads();
    if (checks_.failed()) checks_.describe(wave_);
    if (!wave.reads.empty())
      if (const std::span<Read> asked = reads_.ask(wave_); !asked.empty()) return Pull{asked};
    if (!wave.reductions.empty()) {
      const std::span<const AllReduceBuffer> begun = reductions_.begin(wave_);
      return AllReduce{reductions_.last_ticket(), begun};
    }
    if (wave.awaited >= 0) return Await{wave.awaited};
    if (!wave.updates.empty())
      if (std::optional<Next> asked = change()) return *asked;
  }
  if (checks_.failed()) checks_.raise();
  return finish();
}

// Takes in the answer to what was asked in this wave. An answer to an announcement is followed by
// the push of what is left of it.
std::optional<Step::Next> Step::Run::answered() {
  const Wave& wave = waves()[wave_];
  if (!wave.reads.empty()) reads_.take_in(wave_);
  reductions_.end_up_to(wave.awaited);
  if (std::exchange(announced_, false)) {
    updates_.leave_out(left_out_);
    if (std::optional<Next> asked = push()) return asked;
  }
  // Updates that were not announced were made before.
  if (device_ != nullptr && !wave.updates.empty()) device_->updates.make(bound());
  return std::nullopt;
}

// The device makes its updates at once, unless they are announced first.
std::optional<Step::Next> Step::Run::change() {
  updates_.gather(wave_);
  if (updates_.are_announced()) {
    announced_ = true;
    left_out_.assign(updates_.announced().size(), false);
    return Announce{updates_.announced(), &left_out_};
  }
  if (device_ != nullptr) device_->updates.make(bound());
  return push();
}

std::optional<Step::Next> Step::Run::push() {
  const std::span<Update> pushed = updates_.pushed();
  if (pushed.empty()) return std::nullopt;
  pushed_ = true;
  return Push{pushed};
}

// ---- computing ----

void Step::Run::compute(std::size_t wave) {
  const BoundWave& bound = values_.bound().waves[wave];
  for (const Instruction& instruction : bound.compute)
    if (!updates_.is_read_within(bound, instruction)) run_instruction(instruction);
}

void Step::Run::run_instruction(const Instruction& instruction) {
  const TraceSpan span(values_.node(instruction.node).op->name.data(), values_.context().closure);
  if (!instruction.run) {
    // A device with memory of its own may run later: the value is looked at behind the whole wave.
    if (space_.on_host) return checks_.look_at(instruction);
    return values_.bring(instruction.inputs[0]);
  }
  // The lists of pointers belong to the workspace, so that an instruction allocates nothing.
  auto& in = space_.call_inputs;
  auto& out = space_.call_outputs;
  in.clear();
  out.clear();
  for (std::int32_t value : instruction.inputs) in.push_back(values_.data(value));
  for (std::int32_t value : instruction.outputs) out.push_back(values_.writable(value));
  try {
    instruction.run({in.data(), out.data()});
  } catch (const InvalidArgumentError& error) {
    if (checks_.stops(instruction.node)) {
      checks_.describe(wave_);
      checks_.raise();
    }
    values_.bound().fail(instruction.node, Code::kInvalidArgument, error.what());
  }
  // made by the kernel, not in the arena
  if (values_.bound().type(instruction.outputs[0]).dtype == DType::kString)
    values_.lies_at(instruction.outputs[0], out[0]);
}

// All that the host looks at in this wave comes with one wait: checked values, ids, what is reduced
// or pushed, and in the last wave the outputs. Outputs alone are not waited for yet, because
// updates on the device may still follow.
void Step::Run::bring_what_host_reads() {
  reads_.bring_ids(wave_);
  reductions_.bring_shares(wave_);
  updates_.bring(wave_);
  if (space_.host.begun() && wave_ + 1 == waves().size()) collect_outputs();
  if (space_.host.begun()) values_.wait_for_copies();
  for (const Instruction& one : bound().compute)
    if (!one.run) checks_.look_at(one);
}

// Not of a store that wants its updates announced: what is left out differs from run to run.
bool Step::Run::run_recorded() {
  if (device_ == nullptr || memory_.wants_announced()) return false;
  return device_->run_recorded([this](std::size_t wave) { compute(wave); });
}

Step::Next Step::Run::finish() {
  if (outputs_.empty()) collect_outputs();
  if (device_ != nullptr) device_->reads.prepare_later();
  values_.wait_for_copies();
  values_.let_go();
  finished_ = true;
  return Finished{};
}

void Step::Run::collect_outputs() {
  const Plan& plan = values_.plan();
  outputs_.clear();
  outputs_.reserve(plan.graph.outputs.size());
  for (ValueRef ref : plan.graph.outputs) outputs_.push_back(values_.output(plan.value(ref)));
}

// ---- the step ----

namespace {

const std::shared_ptr<const Plan>& plan_of_as_many(const std::shared_ptr<const Plan>& plan,
                                                   const StepContext& context) {
  if (plan->all_reduces && context.replicas != plan->options.replicas)
    throw InvalidArgumentError(str("a step of ", context.replicas,
                                   " replicas, by a plan whose all-reduces are of ",
                                   plan->options.replicas, ": see PlanOptions::replicas"));
  return plan;
}

FailedPreconditionError no_collective(const StepContext& step) {
  return FailedPreconditionError(str("the function all-reduces over ", step.replicas,
                                     " replicas, and is run where there is no collective"));
}

}  // namespace

// Claims the workspace until the step ends: two runs at a time would overwrite each other's values.
Step::Step(std::shared_ptr<const Plan> plan, Workspace& workspace, StepMemory& memory,
           const StepContext& context, RunInputs inputs)
    : run_(std::make_unique<Run>(plan_of_as_many(plan, context), workspace.state(), memory, context,
                                 std::move(inputs))) {}

Step::~Step() = default;

void Step::sum_on(DeviceMember& member) { run_->reductions().sum_on(member); }
Step::Next Step::next() { return run_->next(); }
const StepContext& Step::context() const { return run_->values().context(); }
bool Step::computes_next() const { return run_->computes_next(); }
const std::vector<Tensor>& Step::outputs() const { return run_->outputs(); }

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
    } else if (const auto* announce = std::get_if<Step::Announce>(&needed)) {
      *announce->left_out = store.announce(context, announce->updates);
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
  StepMemory nowhere;
  Step one(plan, workspace, nowhere, step, std::move(inputs));
  const Step::Next needed = one.next();
  if (std::holds_alternative<Step::AllReduce>(needed)) throw no_collective(step);
  if (!std::holds_alternative<Step::Finished>(needed))
    throw InternalError("a graph that is run without variables reads or updates one");
  return one.outputs();
}

}  // namespace cairn
