// Graphs made ready to run.
//
// A Plan is made once per graph and kept: the graph's nodes cut into waves at every pull and every
// push that a later read must see, elementwise chains fused, memory planned. A Step (step.h) is one
// run of it; run() is the whole of one where the variables are at hand.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/arithmetic.h"
#include "core/base/device_cache.h"
#include "core/base/machine.h"
#include "core/graph/graph.h"
#include "core/rows/variable_store.h"
#include "core/tensor/element.h"

namespace cairn {

class Device;  // core/kernels/device.h
class Plan;    // immutable; shared by runs. Thread: any

struct PlanOptions {
  Arithmetic products = Arithmetic::kFloat32;
  // A run repeats bit for bit on the same device: nothing is chosen by how fast it was. It costs
  // time on a GPU, and nothing on the CPU, where a run repeats anyway.
  bool deterministic = false;
  // of a run's values: one that needs more raises ResourceExhausted
  std::size_t bytes_max = machine_memory_bytes();
  // How many replicas run the plan together (StepContext::replicas). With one, an all_reduce is
  // another name for its input.
  std::int32_t replicas = 1;
  // Sums of the replicas' shares of dense updates are all-reduces (core/graph/reduced_shares.h):
  // they begin while the rest is computed, and devices can make them.
  bool reduces_shares = false;
};

// `bound[i]` is the store's id of graph.variables[i]. The graph is verified already.
std::shared_ptr<const Plan> make_plan(Graph graph, std::vector<VariableId> bound,
                                      PlanOptions options = {});
const Graph& plan_graph(const Plan& plan);

// The memory that a lane keeps between runs so that a warm step allocates nothing: its arenas, in
// the memory of the device on which its runs compute. Thread: one.
class Workspace {
 public:
  Workspace();                         // of the CPU
  explicit Workspace(Device& device);  // which outlives it
  ~Workspace();
  // Limits the device memory of tables, where a store lends them: of those that steps use for the
  // first time from now on.
  void limit_tables(const DeviceCache& limit);
  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// The inputs of a run: arguments, and for each iterator argument the elements that it takes, in
// order (Graph::elements_taken).
struct RunInputs {
  std::vector<Tensor> arguments;
  std::vector<std::vector<Element>> elements;
  // The inputs of the workspace's next run, if the device wants them sent ahead. Called once, while
  // the device computes and before the host waits for it; on the CPU never. An error that it raises
  // ends the run. Empty: nothing is known of the next run.
  std::function<std::vector<Tensor>()> next = {};
  // The elements of the run so many runs after this one, as `elements` has them; empty: they are
  // not known. Called as `next` is, from 1 on, where the device caches tables that it looks up.
  std::function<std::vector<std::vector<Element>>(int runs)> later = {};
};

// One run from its beginning to its end, on this thread, against variables that are at hand; the
// outputs. Numeric trouble is not an error: a NaN flows on as TensorFlow's does.
//   Errors  those of the operations and of the store. FailedPrecondition: the plan reduces over
//           several replicas, which needs a collective: drive a Step.
std::vector<Tensor> run(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                        VariableStore& store, const StepContext& step, RunInputs inputs);
std::vector<Tensor> run(const std::shared_ptr<const Plan>& plan, Workspace& workspace,
                        VariableStore& store, const StepContext& step,
                        std::vector<Tensor> arguments, std::vector<std::vector<Element>> elements);
// The same of a graph without variables.
std::vector<Tensor> run_without_variables(const std::shared_ptr<const Plan>& plan,
                                          Workspace& workspace, const StepContext& step,
                                          RunInputs inputs);

}  // namespace cairn
