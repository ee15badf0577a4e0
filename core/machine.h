// What this machine has, for bounds on what others may make a process allocate.
#pragma once
#include <cstddef>

namespace cairn {

// All of its memory in bytes; where a control group of this process allows less, that. Thread: any.
std::size_t machine_memory_bytes();

}  // namespace cairn
