// The conditions that a graph must meet before it is planned or run. Graphs come over a wire:
// nothing in them is taken on trust.
#include <unordered_set>

#include "core/graph/graph.h"
#include "core/graph/infer.h"
#include "core/graph/op_def.h"

namespace cairn {
namespace {

// An attribute that numbers something of the graph is an index that a sender chose.
std::size_t checked_index(const Attributes& attributes, std::string_view name, std::size_t count) {
  std::int64_t index = attributes.get<std::int64_t>(name);
  if (index < 0 || static_cast<std::size_t>(index) >= count)
    infer::fail("there is no ", name, " ", index, "; the graph has ", count);
  return static_cast<std::size_t>(index);
}

// The types of what an effect speaks of.
std::vector<TensorType> subject_of(const Graph& graph, const Node& node) {
  switch (node.op->effect) {
    case Effect::kNone:
    case Effect::kAllReduce: return {};
    case Effect::kArgument:
      return {graph.arguments[checked_index(node.attributes, "index", graph.arguments.size())]};
    case Effect::kRead:
    case Effect::kUpdate:
      return {
          graph.variables[checked_index(node.attributes, "variable", graph.variables.size())].type};
    case Effect::kAdvance: {
      std::vector<TensorType> types;
      for (const auto& column :
           graph.iterators[checked_index(node.attributes, "iterator", graph.iterators.size())]
               .columns)
        types.push_back(column.type);
      return types;
    }
  }
  return {};
}

// References lead backwards only, which makes the graph acyclic without a search.
void check_ref(const Graph& graph, ValueRef value, std::size_t nodes_before) {
  if (value.node < 0 || static_cast<std::size_t>(value.node) >= nodes_before)
    infer::fail("it refers to node ", value.node, ", which does not stand before it");
  std::size_t outputs = graph.nodes[static_cast<std::size_t>(value.node)].outputs.size();
  if (value.output < 0 || static_cast<std::size_t>(value.output) >= outputs)
    infer::fail("it refers to output ", value.output, " of node ", value.node, ", which has ",
                outputs);
}

void verify_node(const Graph& graph, std::size_t place) {
  const Node& node = graph.nodes[place];
  if (node.op == nullptr) infer::fail("it has no operation");
  std::vector<TensorType> inputs;
  for (ValueRef input : node.inputs) {
    check_ref(graph, input, place);
    inputs.push_back(graph.type(input));
  }
  // The types that a sender claims are never relied on: they must be those that follow.
  std::vector<TensorType> inferred =
      infer_types(*node.op, {inputs, node.attributes, subject_of(graph, node)});
  for (const TensorType& type : inferred) infer::check_size(type.shape);
  if (inferred == node.outputs) return;
  std::string said, found;
  for (const auto& type : node.outputs) said += " " + type.to_string();
  for (const auto& type : inferred) found += " " + type.to_string();
  infer::fail(signature_text(*node.op, inputs), ": its outputs are said to be", said, " but are",
              found);
}

// Verifies the declarations that nodes refer to; the nodes come after them.
void verify_declarations(const Graph& graph) {
  if (graph.nodes.size() > kGraphNodesMax)
    infer::fail("the graph has ", graph.nodes.size(), " nodes; at most ", kGraphNodesMax);
  for (const TensorType& type : graph.arguments) infer::check_size(type.shape);
  for (const ElementSpec& spec : graph.iterators) {
    for (const ColumnSpec& column : spec.columns) infer::check_size(column.type.shape);
    if (!spec.label.empty()) spec.find(spec.label);
  }
  std::unordered_set<std::string_view> names;
  for (const GraphVariable& variable : graph.variables) {
    infer::check_size(variable.type.shape);
    if (variable.name.empty() || !names.insert(variable.name).second)
      infer::fail("the variable name \"", variable.name, "\" is empty or there twice");
    const DType dtype = variable.type.dtype;
    if (!variable.type.shape.known() || dtype == DType::kString || dtype == DType::kFloat64)
      infer::fail("the variable \"", variable.name, "\" is ", variable.type.to_string());
  }
}

void verify_outputs(const Graph& graph) {
  if (graph.outputs.size() != graph.output_names.size())
    infer::fail(graph.outputs.size(), " outputs with ", graph.output_names.size(), " names");
  for (ValueRef output : graph.outputs) check_ref(graph, output, graph.nodes.size());
}

}  // namespace

void verify(const Graph& graph) {
  verify_declarations(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    try {
      verify_node(graph, i);
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(str("node ", i, ": ", error.what()));
    }
  }
  try {
    verify_outputs(graph);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("the outputs: ", error.what()));
  }
}

}  // namespace cairn
