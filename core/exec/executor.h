// Runs a graph against a VariableStore: compute, pull, compute, ..., push.
//
// A Plan is made once a graph and kept: the graph's nodes cut into stages at every pull and every
// push that a later read must see, elementwise chains fused, memory planned. A StepRun is one
// execution of it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/arithmetic.h"
#include "core/base/machine.h"
#include "core/graph/graph.h"
#include "core/rows/variable_store.h"
#include "core/tensor/element.h"

namespace cairn {

class Plan;  // immutable; shared by runs. Thread: any

struct PlanOptions {
  Arithmetic products = Arithmetic::kFloat32;
  // of a run's values: one that needs more raises ResourceExhausted
  std::size_t bytes_max = machine_memory_bytes();
};

// `bound[i]` is the store's id of graph.variables[i]. The graph is verified already.
std::shared_ptr<const Plan> make_plan(Graph graph, std::vector<VariableId> bound,
                                      PlanOptions options = {});
const Graph& plan_graph(const Plan& plan);

// What a lane keeps between runs so that a warm step allocates nothing: its arenas.
// Thread: one.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// One execution. Drive it with start(); it calls the store for each wave and `done` at the end, or
// with the first error (by then no store call is outstanding). Numeric trouble is not an error
// here: a NaN flows on as TensorFlow's does.
//   elements  for each iterator argument the elements that this run takes, in order
//             (Graph::elements_taken).
//   Thread    the lane's; several runs may be between their calls at once, each with its own
//             Workspace.
class StepRun {
 public:
  // Called before a run of compute begins, with the function that continues it: lets a lane put its
  // own order on who computes when (send the next closure's pull first). The default continues at
  // once.
  using Yield = std::function<void(std::function<void()>)>;

  StepRun(std::shared_ptr<const Plan> plan, Workspace& workspace, VariableStore& store,
          const StepContext& step, std::vector<Tensor> arguments,
          std::vector<std::vector<Element>> elements);
  ~StepRun();
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  void start(Done done, Yield yield = {});
  // Hooks of a lane: called just before the first push goes out, and may hold it back (checkpoint
  // cut, staleness bound).
  void before_push(Yield gate);
  const std::vector<Tensor>& outputs() const;  // after done(nullptr)

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// All of the above on this thread with a store that answers inside the call. Errors are thrown.
std::vector<Tensor> run(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                        VariableStore& store, const StepContext& step,
                        std::vector<Tensor> arguments, std::vector<std::vector<Element>> elements);

}  // namespace cairn
