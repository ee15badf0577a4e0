#include "coordinator/central_storage_strategy.h"

#include "coordinator/device_names.h"
#include "coordinator/replica_runtime.h"

namespace cairn {
namespace {

// All devices that there are today have the host's memory: the place is a name.
std::string place_of(const std::vector<std::string>& compute_devices,
                     const std::string& parameter_device) {
  if (!parameter_device.empty()) return devices_of({parameter_device}).front().name;
  const auto devices = devices_of(compute_devices);
  return devices.size() == 1 ? devices.front().name : "cpu:0";
}

std::unique_ptr<ReplicaRuntime> one_place_for(std::size_t replicas, std::uint64_t seed) {
  return std::make_unique<ReplicaRuntime>(seed, static_cast<int>(replicas),
                                          ReplicaRuntime::Rows::kOnePlace);
}

}  // namespace

CentralStorageStrategy::CentralStorageStrategy(const std::vector<std::string>& compute_devices,
                                               const std::string& parameter_device,
                                               const InSyncOptions& options)
    : InSyncStrategy(one_place_for(devices_of(compute_devices).size(), options.seed),
                     devices_of(compute_devices), options),
      parameter_device_(place_of(compute_devices, parameter_device)) {}

}  // namespace cairn
