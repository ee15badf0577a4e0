// Step: one run of a plan, without input or output of its own. It computes until it needs something
// from outside, says what, and goes on when it is asked again:
//
//   Step step(plan, workspace, places, context, inputs);
//   for (;;) {
//     const Step::Next needed = step.next();
//     if (auto* pull = std::get_if<Step::Pull>(&needed))
//       ...  fill pull->reads
//     else if (auto* push = std::get_if<Step::Push>(&needed))
//       ...  apply push->updates
//     else
//       break;
//   }
//   step.outputs()
//
// So whoever drives it decides what waits for what: a lane's coroutine awaits its shards and its
// turn to compute, run() calls a store.
//   Thread  one at a time. Several steps may be between two calls of next() at once, each with its
//           own Workspace.
#pragma once
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/exec/executor.h"
#include "core/exec/plan.h"
#include "core/exec/workspace.h"

namespace cairn {

class Step {
 public:
  // Rows to be read: every `value` is to be filled before next() is called again.
  struct Pull {
    std::span<Read> reads;
  };
  // Changes to be made before next() is called again. The values stay where they are until then.
  struct Push {
    std::span<Update> updates;
  };
  struct Finished {};
  using Next = std::variant<Pull, Push, Finished>;

  // `places` outlives the step.
  Step(std::shared_ptr<const Plan> plan, Workspace& workspace, UpdatePlaces& places,
       const StepContext& context, RunInputs inputs);
  // A step may be given up at any time. What it had pushed may still be on its way: its memory is
  // then not used again.
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Computes up to what it needs next. Not to be called again after Finished, nor after an error.
  //   Errors  those of the operations; InvalidArgument: an id outside its variable, or a check of
  //           numerics that failed, before anything that depends on it is pushed.
  Next next();
  const StepContext& context() const { return context_; }
  // Will next() compute, or only say that the step has finished?
  bool computes_next() const { return bound_ == nullptr || wave_ + 1 < plan_->waves.size(); }
  const std::vector<Tensor>& outputs() const { return outputs_; }  // once it has finished

 private:
  void bind();
  void set_outside_values();
  void place_updates();
  void make_step_key();
  void compute();
  void run_instruction(const Instruction& instruction);
  std::span<Read> reads();
  void request(std::size_t group);
  void after_pull();
  void expand(std::size_t group);
  std::span<Update> updates();
  Update make_update(BoundUpdate& update);
  Tensor sum_rows(BoundUpdate& update, const UniqueIds& ids, const UpdateRule& rule);
  void raise_failed_check();
  std::string blame() const;
  void collect_outputs();
  void let_go();
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
  UpdatePlaces& places_;
  const StepContext context_;
  RunInputs inputs_;
  Tensor step_key_;  // undefined: the graph does not ask for it
  BoundPlan* bound_ = nullptr;
  std::shared_ptr<std::byte> arena_;
  // values that lie where the store wants them, and not in the arena
  std::vector<std::pair<std::int32_t, std::shared_ptr<std::byte>>> placed_;
  std::size_t wave_ = 0;
  bool pushed_ = false, finished_ = false;
  std::int32_t failed_check_ = -1;  // the first check_numerics that failed
  float failed_value_ = 0;          // what it found
  std::vector<Tensor> outputs_;
};

}  // namespace cairn
