// Threads that give way to those that answer requests.
#pragma once

namespace cairn::serving {

// From now on this thread takes what the others leave of the processors, and about a tenth of one
// where they leave nothing.
void run_in_background();

}  // namespace cairn::serving
