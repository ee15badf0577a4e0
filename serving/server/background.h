// Threads that share the processors with those that answer requests.
#pragma once
#include "core/base/clock.h"

namespace cairn::serving {

// How often a background thread gives way. On its own the kernel would preempt it only at a timer
// tick, and these are 1 to 10 ms apart: too long for a request to wait.
inline constexpr Duration kGiveWayEvery = std::chrono::microseconds(200);

// From now on this thread takes what the others leave of the processors, and about a tenth of one
// where they leave nothing.
void run_in_background();
// Lets other threads run first that wait for this thread's processor.
void give_way();

}  // namespace cairn::serving
