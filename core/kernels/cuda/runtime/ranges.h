// Names of operations and steps for profilers, by NVTX.
#pragma once

namespace cairn::cuda {

// CAIRN_NVTX=1 or 0 decides; without it, whether a profiler has been attached to the process.
bool wants_names();
// Begin and end a range of this thread; ranges nest.
void begin_range(const char* name);
void end_range();

}  // namespace cairn::cuda
