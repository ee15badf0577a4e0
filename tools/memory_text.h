// What a task's memory goes into, in a few words.
#pragma once
#include <string>

#include "core/base/json.h"

namespace cairn::tools {

// " memory 1024 MB (rows 981, waiting pieces 0, buffers 12)" of a task's own status; empty where it
// has not said yet.
std::string memory_text(const Json& own);

}  // namespace cairn::tools
