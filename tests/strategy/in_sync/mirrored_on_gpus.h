// MirroredStrategy's replicas on a GPU each: the GPU's kernels, compiled for the host, over drivers
// that find races and leaks.
#pragma once
#include <memory>
#include <vector>

#include "core/kernels/cuda/device.h"
#include "strategy/base/device_names.h"
#include "strategy/in_sync/in_sync_strategy.h"
#include "strategy/in_sync/replica_runtime.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"

namespace cairn::testing {

class FakeGpus {
 public:
  explicit FakeGpus(int count) : drivers_(static_cast<std::size_t>(count)) {
    for (int i = 0; i < count; ++i) {
      drivers_[static_cast<std::size_t>(i)] = std::make_unique<FakeDriver>();
      devices_.push_back(cuda::make_device(str("gpu:", i), driver(i), cpu_device()));
    }
  }
  FakeDriver& driver(int i) { return *drivers_[static_cast<std::size_t>(i)]; }
  std::vector<NamedDevice> named() const {
    std::vector<NamedDevice> all;
    for (const auto& device : devices_) all.push_back({std::string(device->name()), device.get()});
    return all;
  }

 private:
  std::vector<std::unique_ptr<FakeDriver>> drivers_;
  std::vector<std::unique_ptr<Device>> devices_;
};

class MirroredOnGpus final : public FakeGpus, public InSyncStrategy {
 public:
  explicit MirroredOnGpus(int replicas, const InSyncOptions& options = {})
      : FakeGpus(replicas),
        InSyncStrategy(
            std::make_unique<ReplicaRuntime>(options.seed, replicas, ReplicaRuntime::Rows::kCopies),
            named(), options) {}
};

}  // namespace cairn::testing
