#include "coordinator/central_storage_strategy.h"

#include "coordinator/device_names.h"
#include "coordinator/replica_runtime.h"

namespace cairn {
namespace {

// All devices that there are today have the host's memory, so that the name is only verified.
std::unique_ptr<ReplicaRuntime> one_place_for(std::size_t replicas,
                                              const std::string& parameter_device,
                                              std::uint64_t seed) {
  if (!parameter_device.empty()) devices_of({parameter_device});
  return std::make_unique<ReplicaRuntime>(seed, static_cast<int>(replicas),
                                          ReplicaRuntime::Rows::kOnePlace);
}

}  // namespace

CentralStorageStrategy::CentralStorageStrategy(const std::vector<std::string>& compute_devices,
                                               const std::string& parameter_device,
                                               const InSyncOptions& options)
    : InSyncStrategy(
          one_place_for(devices_of(compute_devices).size(), parameter_device, options.seed),
          devices_of(compute_devices), options) {}

}  // namespace cairn
