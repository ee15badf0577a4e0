// OneDeviceStrategy: one process, one device, no server. It is what a model is written and tried
// with, and the yardstick for what distribution costs.
//
//   OneDeviceStrategy strategy;
//   auto scope = strategy.scope();
//   auto batches = strategy.iterate(dataset);
//   for (int i = 0; i < steps; ++i) strategy.run(step, {batches});
#pragma once
#include <cstdint>

#include "coordinator/local_strategy.h"

namespace cairn {

// Each object has variables of its own, apart from those of the default strategy.
//   Thread  one at a time.
class OneDeviceStrategy : public LocalStrategy {
 public:
  // `seed`: of initial values and of random operations.
  explicit OneDeviceStrategy(std::uint64_t seed = 0) : LocalStrategy(seed) {}
};

}  // namespace cairn
