#include "strategy/in_sync/mirrored_strategy.h"

#include <utility>

#include "strategy/base/device_names.h"
#include "strategy/in_sync/replica_runtime.h"

namespace cairn {
namespace {

std::unique_ptr<ReplicaRuntime> copies_for(std::size_t replicas, std::uint64_t seed) {
  return std::make_unique<ReplicaRuntime>(seed, static_cast<int>(replicas),
                                          ReplicaRuntime::Rows::kCopies);
}

InSyncOptions with(InSyncOptions options, std::shared_ptr<CrossDeviceOps> ops) {
  options.cross_device_ops = std::move(ops);
  return options;
}

}  // namespace

MirroredStrategy::MirroredStrategy(const std::vector<std::string>& devices,
                                   const InSyncOptions& options)
    : InSyncStrategy(copies_for(devices_of(devices).size(), options.seed), devices_of(devices),
                     options) {}

MirroredStrategy::MirroredStrategy(const std::vector<std::string>& devices,
                                   std::shared_ptr<CrossDeviceOps> cross_device_ops,
                                   InSyncOptions options)
    : MirroredStrategy(devices, with(std::move(options), std::move(cross_device_ops))) {}

MirroredStrategy::MirroredStrategy(const std::vector<std::string>& devices,
                                   std::string_view cross_device_ops, InSyncOptions options)
    : MirroredStrategy(devices, cross_device_ops_of(cross_device_ops), std::move(options)) {}

}  // namespace cairn
