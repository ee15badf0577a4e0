// Threads that give way to those that answer requests.
#pragma once

namespace cairn::serving {

// From now on this thread takes what the others leave of the processors, and about a tenth of one
// where they leave nothing: in slices of 0.1 ms, so that no request waits for a longer one. Before
// Linux 6.12 slices are as the system has them, some milliseconds.
void run_in_background();

}  // namespace cairn::serving
