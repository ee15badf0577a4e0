#include "core/kernels/device_group.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/kernels/device.h"

namespace cairn {

DeviceGroup join_devices(std::span<Device* const> devices) {
  if (devices.size() < 2) return {{}, "there is one replica"};
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i]->memory() == Device::Memory::kHost)
      return {{}, str(devices[i]->name(), " has no memory of its own")};
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), devices[i]) !=
        devices.begin() + static_cast<std::ptrdiff_t>(i))
      return {{}, str("replicas share ", devices[i]->name())};
  }
  return devices.front()->join(devices);
}

}  // namespace cairn
