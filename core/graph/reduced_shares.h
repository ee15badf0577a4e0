// Shares of dense updates as all-reduces: for replicas whose devices sum values where they lie.
#pragma once
#include "core/graph/graph.h"

namespace cairn {

// The graph in which each dense update_shared of a sum is an update_variable by the sum, from an
// all_reduce of the replica's share: all replicas then make the same update. Others are left as
// they are: sparse updates, means, which of equal values are that value to the bit, and values of a
// few elements, which travel with the list of a push's updates.
//   A check of numerics that stops an update stops its all_reduce, and so the run (Step).
Graph with_reduced_shares(Graph graph);

}  // namespace cairn
