// The parts of a played cluster: its variables, functions and data, as an honest coordinator would
// send them.
#pragma once
#include <vector>

#include "core/rows/layout.h"
#include "data/dataset/dataset.h"

namespace cairn::fuzz {

inline constexpr std::uint32_t kFunctions = 5;

// Number, spec and rule; each is cut into halves, one a shard. The last is so large that a shard
// lends its rows.
const std::vector<VariableLayout>& played_variables();
// 0: of an argument alone; 1: of a pipeline; 2: rows pulled and updated; 3: a dense update; 4: an
// assignment.
const std::vector<std::byte>& played_function(std::uint32_t id);
const std::vector<std::byte>& played_dataset();

}  // namespace cairn::fuzz
