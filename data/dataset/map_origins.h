// The lines on which functions of map(), filter() and take_while() were recorded.
//
// Such a function travels with its dataset as a graph's bytes, which have no origins
// (core/base/origin.h). The process that recorded the function keeps them here, for its own errors
// and for those that its workers send.
//   Thread  any.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/graph.h"

namespace cairn {

// Returns the graph's bytes and remembers its origins, those of the newest 4,096 graphs.
std::vector<std::byte> serialize_with_origins(const Graph& traced);
// Returns the graph, with its origins if this process recorded it.
Graph parse_with_origins(std::span<const std::byte> bytes);
// Replaces "node 3, gather(" in the message by the line that recorded it, and sets the place's
// origin, if exactly one remembered operation matches. Otherwise it changes nothing.
void add_map_origin(ErrorParts& parts);

}  // namespace cairn
