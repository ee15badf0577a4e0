#include "strategy/base/one_device_strategy.h"

#include "core/exec/local_runtime.h"
#include "strategy/base/device_names.h"

namespace cairn {

OneDeviceStrategy::OneDeviceStrategy(std::uint64_t seed) : OneDeviceStrategy("cpu:0", seed) {}
OneDeviceStrategy::OneDeviceStrategy(const std::string& device, std::uint64_t seed)
    : OneDeviceStrategy(device_named(device), seed) {}
OneDeviceStrategy::OneDeviceStrategy(const NamedDevice& device, std::uint64_t seed)
    : LocalStrategy(std::make_unique<LocalRuntime>(seed), *device.device), device_(device.name) {}

}  // namespace cairn
