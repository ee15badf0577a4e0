// A strategy of several replicas, one after another on the variables of one process: enough to see
// the context of each replica and how their values become one.
#pragma once
#include "strategy/base/one_device_strategy.h"

namespace cairn::testing {

class SeveralReplicas final : public OneDeviceStrategy {
 public:
  explicit SeveralReplicas(int replicas) : replicas_(replicas) {}
  int num_replicas_in_sync() const override { return replicas_; }

 private:
  const int replicas_;
};

}  // namespace cairn::testing
