// AsyncCollective: how the replicas of a step reduce values together, whatever lies between them.
#pragma once
#include <kj/async.h>

#include <vector>

#include "core/exec/all_reduce_buffer.h"
#include "core/rows/variable_store.h"

namespace cairn::worker {

class AsyncCollective {
 public:
  virtual ~AsyncCollective() = default;
  // Begins to reduce the values in place, and resolves when they hold what all replicas' shares
  // come to. Calls of one step are made in the same order on every replica, and the next may come
  // before this one has resolved.
  //   Errors  Aborted: a replica is away, or gave up; the step is to be run again by all of them.
  //   Cancel  dropping the promise ends the wait, but the values may still be written to,
  //           for which the reductions' owners keep them valid.
  virtual kj::Promise<void> all_reduce(const StepContext& step,
                                       std::vector<AllReduceBuffer> reductions) = 0;
};

}  // namespace cairn::worker
