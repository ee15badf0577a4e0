#include "core/kernels/device_group.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/kernels/device.h"

namespace cairn {

std::string obstacle_to_sums(std::span<Device* const> devices) {
  for (auto each = devices.begin(); each != devices.end(); ++each) {
    if ((*each)->memory() == Device::Memory::kHost)
      return str((*each)->name(), " has no memory of its own");
    if (std::find(devices.begin(), each, *each) != each)
      return str("replicas share ", (*each)->name());
  }
  return {};
}

DeviceGroup join_devices(std::span<Device* const> devices, const DeviceGroupPlace& place) {
  if (!place.spans() && devices.size() < 2) return {{}, "there is one replica"};
  if (std::string obstacle = obstacle_to_sums(devices); !obstacle.empty())
    return {{}, std::move(obstacle)};
  return devices.front()->join(devices, place);
}

std::string Device::new_group_id() { throw UnimplementedError(sum_means().why_not); }

}  // namespace cairn
