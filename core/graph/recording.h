// How operations are recorded: the nodes behind Arrays, and the trace that keeps effects in program
// order.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/custom_gradient.h"
#include "core/graph/graph.h"
#include "core/graph/op_def.h"
#include "core/graph/variable.h"

namespace cairn {

// How gradients pass a node, instead of by its operation (core/graph/custom_gradient.h). It belongs
// to the recording alone: gradients are recorded before a graph is made of it.
struct Derivative {
  std::vector<Array> inputs;  // where they go
  CustomBackward backward;
};

// Immutable once recorded. Inputs were recorded before, so ascending sequence numbers are a
// topological order.
struct ArrayNode {
  ~ArrayNode();  // unwinds long chains without recursion

  std::uint64_t sequence = 0;  // grows through the process
  const OpDef* op = nullptr;
  std::vector<Array> inputs;
  Attributes attributes;
  std::vector<TensorType> outputs;
  std::uint64_t trace = 0;  // of an effect: the trace it belongs to; 0: eager
  // of a variable's effects; its index is settled when a graph is made
  std::shared_ptr<const VariableSpec> variable;
  EagerRuntime* runtime = nullptr;  // beside `variable`
  bool mirrored = false;            // likewise: GraphVariable::mirrored
  // the value of an eager read: a constant by now, except that gradients still reach the variable
  Tensor value;
  std::unique_ptr<Derivative> derivative;
  Origin origin;

  bool passes_gradients() const { return derivative != nullptr || op->gradient != nullptr; }
  // The values to which gradients go.
  const std::vector<Array>& sources() const { return derivative ? derivative->inputs : inputs; }
};

// The function being traced on this thread; construction begins a trace, destruction ends it.
// Traces nest.
class TraceContext {
 public:
  TraceContext();
  ~TraceContext();
  TraceContext(const TraceContext&) = delete;
  TraceContext& operator=(const TraceContext&) = delete;
  static TraceContext* current();  // nullptr: eager

  std::uint64_t id() const { return id_; }
  const std::vector<std::shared_ptr<const ArrayNode>>& effects() const { return effects_; }
  // random operations of a trace are numbered as recorded
  std::int64_t next_random_place() { return random_places_++; }
  // The argument that recorded_worker_index() adds, behind the `arguments` of the callable;
  // undefined until worker_index() is called.
  void set_arguments(std::size_t arguments) { arguments_ = arguments; }
  const Array& worker_index();
  bool takes_worker_index() const { return worker_index_.defined(); }
  void add_effect(std::shared_ptr<const ArrayNode> node) { effects_.push_back(std::move(node)); }

 private:
  std::uint64_t id_;
  TraceContext* previous_;
  std::int64_t random_places_ = 0;
  std::size_t arguments_ = 0;
  Array worker_index_;
  std::vector<std::shared_ptr<const ArrayNode>> effects_;  // updates and advances, in program order
};

// Records a pure operation. InvalidArgument naming the operation and the shapes.
Array record(std::string_view op, std::vector<Array> inputs, Attributes attributes = {});

// Records `value` as it is, with a derivative of its own.
Array record_with_derivative(const Array& value, Derivative derivative);

// Records an effect into the current trace (none: the node is marked eager). `subject` as OpInputs
// has it.
struct EffectRecord {
  std::string_view op;
  std::vector<Array> inputs;
  Attributes attributes;
  std::vector<TensorType> subject;
  std::shared_ptr<const VariableSpec> variable;
  EagerRuntime* runtime = nullptr;
  bool mirrored = false;
};
std::shared_ptr<ArrayNode> record_effect(EffectRecord effect);

// The tensor of a "constant" node, or nullptr.
const Tensor* constant_value(const Array& array);

}  // namespace cairn
