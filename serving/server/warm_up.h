// Getting a version ready for its first requests.
#pragma once
#include <deque>

#include "core/tensor/element.h"

namespace cairn::serving {

class ServedModel;

// Computes these requests, alone and together, on each of `threads` computing threads' workspaces:
// the first run of a shape makes the graph ready for it, and the first read of a row brings it into
// the caches.
//   Thread  any, while no other thread computes with `next`.
void warm_up(const ServedModel& next, const std::deque<Element>& requests, int threads);

}  // namespace cairn::serving
