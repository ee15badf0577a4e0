#include "strategy/base/device_assignment.h"

#include <map>
#include <utility>

#include "core/base/error.h"
#include "strategy/base/device_names.h"

namespace cairn {
namespace {

std::string place(std::size_t replica, std::size_t logical) {
  return str("logical device ", logical, " of replica ", replica);
}

}  // namespace

// All is verified here and not when a strategy is made of it, so that an error can say at which
// place of the assignment it is.
DeviceAssignment::DeviceAssignment(std::vector<std::vector<std::string>> devices)
    : devices_(std::move(devices)) {
  if (devices_.empty())
    throw InvalidArgumentError("a device assignment has no replica: give it a list for each");
  std::map<std::string, std::string> taken;  // by a device's name, the place that has it
  for (std::size_t replica = 0; replica < devices_.size(); ++replica) {
    const auto& own = devices_[replica];
    if (own.empty())
      throw InvalidArgumentError(str("replica ", replica,
                                     " of a device assignment has no device: it computes on its "
                                     "logical device 0, so name one at least"));
    if (own.size() != devices_.front().size())
      throw InvalidArgumentError(str("replica ", replica, " of a device assignment has ",
                                     own.size(), " logical devices, and replica 0 has ",
                                     devices_.front().size(),
                                     ": all replicas run one program, so give all as many"));
    for (std::size_t logical = 0; logical < own.size(); ++logical) {
      std::string name;
      try {
        name = device_named(own[logical]).name;
      } catch (const InvalidArgumentError& error) {
        throw InvalidArgumentError(str(place(replica, logical), ": ", error.what()));
      } catch (const NotFoundError& error) {
        throw NotFoundError(str(place(replica, logical), ": ", error.what()));
      }
      const auto [before, is_new] = taken.emplace(std::move(name), place(replica, logical));
      if (!is_new)
        throw InvalidArgumentError(str("the device \"", own[logical], "\" is both ", before->second,
                                       " and ", place(replica, logical),
                                       "; each place needs a device of its own"));
    }
  }
}

DeviceAssignment DeviceAssignment::build(const DeviceGrid& grid) {
  if (grid.num_replicas < 1 || grid.num_logical_devices < 1)
    throw InvalidArgumentError(str("a device assignment of ", grid.num_replicas, " replicas of ",
                                   grid.num_logical_devices,
                                   " logical devices: both must be 1 at least"));
  const std::int64_t wanted = std::int64_t{grid.num_replicas} * grid.num_logical_devices;
  if (!grid.devices.empty() && static_cast<std::int64_t>(grid.devices.size()) != wanted)
    throw InvalidArgumentError(
        str("a device assignment of ", grid.num_replicas, " replicas of ", grid.num_logical_devices,
            " logical devices needs ", wanted, " devices, and ", grid.devices.size(),
            " are named: name as many, or none, to get the first logical CPUs"));
  if (wanted > kLogicalCpusMax)
    throw InvalidArgumentError(str("a device assignment of ", grid.num_replicas, " replicas of ",
                                   grid.num_logical_devices, " logical devices needs ", wanted,
                                   " devices, and there are ", kLogicalCpusMax,
                                   ": use fewer replicas or fewer logical devices"));
  std::vector<std::vector<std::string>> devices(static_cast<std::size_t>(grid.num_replicas));
  std::size_t next = 0;
  for (auto& own : devices)
    for (int logical = 0; logical < grid.num_logical_devices; ++logical, ++next)
      own.push_back(grid.devices.empty() ? str("cpu:", next) : grid.devices[next]);
  return DeviceAssignment(std::move(devices));
}

const std::string& DeviceAssignment::device(int replica, int logical_device) const {
  if (replica < 0 || replica >= num_replicas() || logical_device < 0 ||
      logical_device >= num_logical_devices())
    throw InvalidArgumentError(str("there is no logical device ", logical_device, " of replica ",
                                   replica, ": the assignment has ", num_replicas(),
                                   " replicas of ", num_logical_devices(), " logical devices"));
  return devices_[static_cast<std::size_t>(replica)][static_cast<std::size_t>(logical_device)];
}

std::vector<std::string> DeviceAssignment::devices_of_logical(int logical_device) const {
  std::vector<std::string> names;
  for (int replica = 0; replica < num_replicas(); ++replica)
    names.push_back(device(replica, logical_device));
  return names;
}

}  // namespace cairn
