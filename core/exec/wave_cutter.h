// The order of a plan's compute, pulls, pushes and all-reduces.
#pragma once
#include <cstdint>
#include <vector>

#include "core/exec/plan.h"

namespace cairn {

// Cuts the live nodes into waves: again and again the reads that are ready, with just the compute
// their ids need; where none is ready, the next all-reduces, with the compute that leads to them;
// where none is left to begin, the rest of the compute, after which those under way are awaited;
// and only where a read waits for an update, a push of the updates that are ready. What is left is
// pushed together at the end.
//
// A push waits for the checks of numerics that its updates depend on, and for no others.
std::vector<Wave> cut_waves(const Plan& plan);

// The index of the variable that a read or an update speaks of.
std::int32_t variable_number(const Node& node);

}  // namespace cairn
