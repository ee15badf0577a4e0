#include "model/saved/graph_part.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/graph/op_def.h"

namespace cairn {
namespace {

bool advances(const Node& node) { return node.op->effect == Effect::kAdvance; }

// Which columns of the element that node `taken` brings are read, each with the other half of its
// ragged column.
std::vector<std::size_t> columns_read(const Graph& graph, std::size_t taken) {
  const auto& columns = graph.iterators.front().columns;
  std::vector<bool> read(columns.size());
  const auto note = [&](ValueRef value) {
    if (static_cast<std::size_t>(value.node) == taken)
      read[static_cast<std::size_t>(value.output)] = true;
  };
  for (const Node& node : graph.nodes) std::ranges::for_each(node.inputs, note);
  std::ranges::for_each(graph.outputs, note);
  for (std::size_t i = 0; i < columns.size(); ++i)
    for (std::size_t j = 0; j < columns.size(); ++j)
      if (columns[j].name == columns[i].name + "/row_splits" && (read[i] || read[j]))
        read[i] = read[j] = true;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (read[i]) places.push_back(i);
  return places;
}

template <typename T>
std::vector<T> chosen(const std::vector<T>& all, const std::vector<std::size_t>& places) {
  std::vector<T> some;
  for (const std::size_t place : places) some.push_back(all.at(place));
  return some;
}

}  // namespace

Graph without_unneeded(Graph graph) {
  std::vector<bool> needed(graph.nodes.size());
  for (const ValueRef output : graph.outputs) needed[static_cast<std::size_t>(output.node)] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (advances(node) || node.op->has(OpFlags::kAlwaysLive)) needed[i] = true;
    if (!needed[i]) continue;
    for (const ValueRef input : node.inputs) needed[static_cast<std::size_t>(input.node)] = true;
  }
  std::vector<std::int32_t> places(graph.nodes.size());
  std::vector<Node> kept;
  const auto moved = [&places](ValueRef value) {
    return ValueRef{places[static_cast<std::size_t>(value.node)], value.output};
  };
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!needed[i]) continue;
    places[i] = static_cast<std::int32_t>(kept.size());
    kept.push_back(std::move(graph.nodes[i]));
    std::ranges::transform(kept.back().inputs, kept.back().inputs.begin(), moved);
  }
  graph.nodes = std::move(kept);
  std::ranges::transform(graph.outputs, graph.outputs.begin(), moved);
  return graph;
}

GraphPart part_of(const Graph& graph, const std::vector<std::size_t>& outputs) {
  Graph part = graph;
  part.outputs = chosen(graph.outputs, outputs);
  part.output_names = chosen(graph.output_names, outputs);
  part = without_unneeded(std::move(part));
  const auto taken = std::ranges::find_if(part.nodes, advances);
  if (part.iterators.size() != 1 || std::ranges::count_if(part.nodes, advances) != 1)
    throw InvalidArgumentError("a part of a graph is that of a graph which takes one element");
  const auto node = static_cast<std::size_t>(taken - part.nodes.begin());
  const std::vector<std::size_t> columns = columns_read(part, node);
  if (columns.empty()) throw InvalidArgumentError("these outputs do not depend on any column");
  part.iterators.front().columns = chosen(part.iterators.front().columns, columns);
  taken->outputs = chosen(taken->outputs, columns);
  const auto moved = [&](ValueRef value) {
    if (static_cast<std::size_t>(value.node) != node) return value;
    const auto at = std::ranges::lower_bound(columns, static_cast<std::size_t>(value.output));
    return ValueRef{value.node, static_cast<std::int32_t>(at - columns.begin())};
  };
  for (Node& each : part.nodes) std::ranges::transform(each.inputs, each.inputs.begin(), moved);
  std::ranges::transform(part.outputs, part.outputs.begin(), moved);
  verify(part);
  return {std::move(part), columns};
}

}  // namespace cairn
