#include "core/graph/reduced_shares.h"

#include <string>
#include <utility>

#include "core/graph/op_def.h"
#include "core/graph/reduce_op.h"

namespace cairn {
namespace {

constexpr std::int64_t kFewElements = 4;

bool has_sum(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kInt32 || dtype == DType::kInt64;
}

bool shares_a_large_sum(const Graph& graph, const Node& node) {
  if (!is_shared_update(node) || node.attributes.get<bool>("sparse") ||
      parse_aggregation(node.attributes.get<std::string>("shares")) != Aggregation::kSum)
    return false;
  const auto variable = static_cast<std::size_t>(node.attributes.get<std::int64_t>("variable"));
  const TensorType& type = graph.variables[variable].type;
  return has_sum(type.dtype) && type.shape.elements() > kFewElements;
}

Node reduction_of(const Graph& graph, const Node& update) {
  const ValueRef share = update.inputs[0];
  Node node;
  node.original = update.original;
  node.op = find_op("all_reduce");
  node.inputs = {share};
  node.attributes.set("reduction", std::string(reduce_op_name(ReduceOp::kSum)));
  node.outputs = {graph.type(share)};
  return node;
}

}  // namespace

Graph with_reduced_shares(Graph graph) {
  std::vector<Node> old = std::exchange(graph.nodes, {});
  std::vector<std::int32_t> moved;  // by old number: the new one
  const auto at = [&](ValueRef value) {
    return ValueRef{moved[static_cast<std::size_t>(value.node)], value.output};
  };
  for (Node& node : old) {
    node.original = static_cast<std::int32_t>(moved.size());
    for (ValueRef& input : node.inputs) input = at(input);
    if (shares_a_large_sum(graph, node)) {
      graph.nodes.push_back(reduction_of(graph, node));
      node.inputs[0] = {static_cast<std::int32_t>(graph.nodes.size()) - 1, 0};
      Attributes own;
      for (const auto& [name, value] : node.attributes.entries())
        if (name != "shares") own.set(name, value);
      node.op = find_op("update_variable");
      node.attributes = std::move(own);
    }
    moved.push_back(static_cast<std::int32_t>(graph.nodes.size()));
    graph.nodes.push_back(std::move(node));
  }
  for (ValueRef& output : graph.outputs) output = at(output);
  return graph;
}

}  // namespace cairn
