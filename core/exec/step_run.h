// The state machine behind a StepRun.
#pragma once
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "core/exec/executor.h"
#include "core/exec/workspace.h"

namespace cairn {

class StepMachine {
 public:
  using Yield = StepRun::Yield;

  StepMachine(std::shared_ptr<const Plan> plan, Workspace& workspace, VariableStore& store,
              const StepContext& step, RunInputs inputs);
  ~StepMachine();
  StepMachine(const StepMachine&) = delete;
  StepMachine& operator=(const StepMachine&) = delete;

  void start(Done done, Yield yield);
  Yield gate;
  std::vector<Tensor> outputs;

 private:
  enum class Stage : std::uint8_t { kBind, kCompute, kCall, kAfterCall, kFinished };

  // Advances until something outside has to answer. A store or hook that answers inside its call
  // only sets `again_`, so the depth of the stack does not grow with the number of waves.
  void drive();
  void advance();
  void wait_for(const Yield& hook);
  Done resume_from_store();
  void finish(std::exception_ptr error);

  void bind();
  void set_outside_values();
  void place_updates();
  void make_step_key();
  void compute();
  void run_instruction(const Instruction& instruction);
  void pull();
  void request(std::size_t group);
  void after_pull();
  void expand(std::size_t group);
  void push();
  Update make_update(BoundUpdate& update);
  Tensor sum_rows(BoundUpdate& update, const UniqueIds& ids, const UpdateRule& rule);
  void raise_failed_check();
  std::string blame() const;
  void collect_outputs();
  Tensor output(std::int32_t value) const;
  const Tensor* outside_tensor(std::int32_t value) const;

  const Node& node(std::int32_t i) const { return plan_->graph.nodes[static_cast<std::size_t>(i)]; }
  std::int32_t input(std::int32_t i, std::size_t k) const {
    return plan_->value(node(i).inputs[k]);
  }
  const std::byte* data(std::int32_t value) const {
    return space_.pointers[static_cast<std::size_t>(bound_->root(value))];
  }
  std::byte* arena_at(std::int64_t offset) const { return arena_.get() + offset; }
  const GraphVariable& variable_of(std::int32_t i) const;
  VariableId stored_variable(std::int32_t i) const;  // the store's number for it
  const std::shared_ptr<std::byte>& owner_of(std::int32_t value) const;

  std::shared_ptr<const Plan> plan_;
  Workspace::State& space_;
  VariableStore& store_;
  StepContext step_;
  RunInputs inputs_;
  Tensor step_key_;  // undefined: the graph does not ask for it
  BoundPlan* bound_ = nullptr;
  std::shared_ptr<std::byte> arena_;
  // values that lie where the store wants them, and not in the arena
  std::vector<std::pair<std::int32_t, std::shared_ptr<std::byte>>> placed_;
  Stage stage_ = Stage::kBind;
  std::size_t wave_ = 0;
  bool driving_ = false, again_ = false, pushed_ = false;
  std::int32_t failed_check_ = -1;  // the first check_numerics that failed
  float failed_value_ = 0;          // what it found
  std::exception_ptr error_;
  Done done_;
  Yield yield_;
};

struct StepRun::State : StepMachine {
  using StepMachine::StepMachine;
};

}  // namespace cairn
