// AsynchronousPolicy: a closure starts as soon as a lane has room for it, on the lane with the
// fewest closures, and ends when the lane has answered. This is what ConsistencyPolicy does where
// nothing is overridden.
#pragma once
#include "coordinator/dispatch/consistency_policy.h"

namespace cairn {

class AsynchronousPolicy final : public ConsistencyPolicy {
 public:
  using ConsistencyPolicy::ConsistencyPolicy;
};

}  // namespace cairn
