// A recorded graph as TensorFlow's GraphDef, for TensorBoard's picture of it. It is there to be
// looked at: the operations are ours, and no other program can run it.
//   Source  tensorflow/core/framework/{graph,node_def,attr_value,types}.proto
//   Thread  any.
#pragma once
#include <string>

#include "core/graph/graph.h"

namespace cairn {

// The serialised message. A node is called by its operation and its number, and what reads or
// updates a variable stands below the variable's name, by which TensorBoard groups nodes. Shapes
// of outputs and plain attributes are there, values of constants are not.
std::string graph_def(const Graph& graph);

}  // namespace cairn
