// A version that is about to take over runs the last requests of the one before.
#pragma once
#include <cstdint>
#include <deque>

#include "core/tensor/element.h"

namespace cairn::serving {

class ServedModel;

struct RecentRequests {
  std::deque<Element> columns = {};
  std::int64_t largest_batch = 0;  // examples in the largest batch that they were computed in
};

// Runs them on each of the threads' workspaces, in batches of every size up to the largest: the
// first run of a shape makes the graph ready for it, and the first read of a row brings it into the
// caches. Larger batches would take memory that nothing needs.
//   Thread  one, while no other predicts with `next`.
//   Errors  those of a run, but for ids that this version does not have.
void warm_up(const ServedModel& next, const RecentRequests& recent, int threads);

}  // namespace cairn::serving
