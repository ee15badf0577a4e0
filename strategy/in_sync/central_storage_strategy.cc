#include "strategy/in_sync/central_storage_strategy.h"

#include "core/base/error.h"
#include "strategy/base/device_names.h"
#include "strategy/in_sync/replica_runtime.h"

namespace cairn {
namespace {

// Variables lie in the host's memory, whatever computes: the place is a name.
std::string place_of(const std::vector<std::string>& compute_devices,
                     const std::string& parameter_device) {
  if (!parameter_device.empty()) {
    const DeviceName named = parse_device_name(parameter_device);
    if (named.kind == DeviceName::Kind::kGpu)
      throw InvalidArgumentError(str("the parameter device is \"", parameter_device,
                                     "\", and variables lie in the host's memory, from which GPUs "
                                     "read them too: name a logical CPU, or none"));
    return named.text();
  }
  if (compute_devices.size() != 1) return "cpu:0";
  const DeviceName only = parse_device_name(compute_devices.front());
  return only.kind == DeviceName::Kind::kCpu ? only.text() : "cpu:0";
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
