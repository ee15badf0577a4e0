#include "coordinator/mirrored_strategy.h"

#include "coordinator/device_names.h"
#include "coordinator/replica_runtime.h"

namespace cairn {
namespace {

std::unique_ptr<ReplicaRuntime> copies_for(std::size_t replicas, std::uint64_t seed) {
  return std::make_unique<ReplicaRuntime>(seed, static_cast<int>(replicas),
                                          ReplicaRuntime::Rows::kCopies);
}

}  // namespace

MirroredStrategy::MirroredStrategy(const std::vector<std::string>& devices,
                                   const InSyncOptions& options)
    : InSyncStrategy(copies_for(devices_of(devices).size(), options.seed), devices_of(devices),
                     options) {}

}  // namespace cairn
