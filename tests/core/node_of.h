// Graphs that a test damages.
#pragma once
#include <string_view>

#include "core/base/error.h"
#include "core/graph/graph.h"

namespace cairn::testing {

// The first node of that operation.
inline Node& node_of(Graph& graph, std::string_view op) {
  for (Node& node : graph.nodes)
    if (node.op->name == op) return node;
  throw InternalError(str("the graph has no ", op));
}

}  // namespace cairn::testing
