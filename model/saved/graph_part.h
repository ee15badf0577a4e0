// Parts of a saved model's graph: what some of its outputs need.
//   Thread  any.
#pragma once
#include <cstddef>
#include <vector>

#include "core/graph/graph.h"

namespace cairn {

// Returns the graph without the nodes that neither outputs nor effects need. The lists of iterators
// and variables stay: the model's description and its weights have as many.
Graph without_unneeded(Graph graph);

struct GraphPart {
  Graph graph;  // takes elements of `columns` alone
  // The places of its columns among those that the whole graph takes, ascending.
  std::vector<std::size_t> columns;
};

// Returns what computes the outputs at these places, in that order, from the columns of the element
// that they are computed from. A ragged column's values and row splits stay together.
//   Errors  InvalidArgument: the graph takes no element, or several; or these outputs need no
//           column.
GraphPart part_of(const Graph& graph, const std::vector<std::size_t>& outputs);

}  // namespace cairn
