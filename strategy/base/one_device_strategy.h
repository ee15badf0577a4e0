// OneDeviceStrategy: one process, one device, no server. It is what a model is written and tried
// with, and the yardstick for what distribution costs.
//
//   OneDeviceStrategy strategy;                  or strategy("gpu:0")
//   auto scope = strategy.scope();
//   auto batches = strategy.iterate(dataset);
//   for (int i = 0; i < steps; ++i) strategy.run(step, {batches});
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "strategy/base/local_strategy.h"

namespace cairn {

struct NamedDevice;

// Each object has variables of its own, apart from those of the default strategy.
//   Thread  one at a time.
class OneDeviceStrategy : public LocalStrategy {
 public:
  // On the processor. `seed`: of initial values and of random operations.
  explicit OneDeviceStrategy(std::uint64_t seed = 0);
  // Steps compute on `device`, "cpu:0" or "gpu:0". A GPU borrows the variables while steps run.
  //   Errors  InvalidArgument: a name that means no device. NotFound: a GPU that this machine does
  //           not have; says why.
  explicit OneDeviceStrategy(const std::string& device, std::uint64_t seed = 0);

 protected:
  std::vector<std::string> worker_devices() const override { return {device_}; }

 private:
  OneDeviceStrategy(const NamedDevice& device, std::uint64_t seed);
  std::string device_;
};

}  // namespace cairn
