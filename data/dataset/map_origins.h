// The lines on which functions of map(), filter() and take_while() were recorded.
//
// Such a function travels with its dataset as a graph's bytes, which have no origins
// (core/base/origin.h). Here the process that recorded it looks them up again, for itself and for
// errors that its workers send.
//   Thread  any.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/graph.h"

namespace cairn {

// The graph's bytes, after its origins have been remembered, of 4,096 graphs at most.
std::vector<std::byte> serialize_with_origins(const Graph& traced);
// The graph, with its origins where this process recorded it.
Graph parse_with_origins(std::span<const std::byte> bytes);
// Replaces "node 3, gather(" in the message by the line of the only remembered operation that this
// can be, and sets the place's origin. Changes nothing where there is none, or several.
void add_map_origin(ErrorParts& parts);

}  // namespace cairn
