// A task's memory, and a save's progress, in a few words, for `cairn status`.
#pragma once
#include <string>

#include "core/base/json.h"

namespace cairn::tools {

// " memory 1024 MB (rows 981, waiting pieces 0, buffers 12)", from a task's own status; empty if
// the task has not reported yet.
std::string memory_text(const Json& own);
// " saving: 43 %, 920 MB written, 105 MB of at most 512 MB copied aside, 2 pushes wait", from a
// ps's own status; empty if it is not saving.
std::string save_text(const Json& own);
// " restoring on demand: 920 of 4100 MB are there", likewise.
std::string restore_text(const Json& own);

}  // namespace cairn::tools
