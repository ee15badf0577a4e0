// The parts of a task's memory, in a few words, for `cairn status`.
#pragma once
#include <string>

#include "core/base/json.h"

namespace cairn::tools {

// " memory 1024 MB (rows 981, waiting pieces 0, buffers 12)", from a task's own status; empty if
// the task has not reported yet.
std::string memory_text(const Json& own);

}  // namespace cairn::tools
