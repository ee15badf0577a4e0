// The devices that a strategy of one process computes on, by the names that programs give them.
#pragma once
#include <string>
#include <vector>

#include "core/kernels/device.h"

namespace cairn {

inline constexpr int kLogicalCpusMax = 64;

// A device name, parsed; this machine may have no such device.
struct DeviceName {
  enum class Kind : bool { kCpu, kGpu } kind = Kind::kCpu;
  int ordinal = 0;
  std::string text() const;  // "cpu:0", "gpu:1", whatever it was called
};
// "CPU:0", "/cpu:0" and "/device:CPU:0" mean the same as "cpu:0", and so with GPUs.
//   Errors  InvalidArgument: a name that means no device. There are kLogicalCpusMax logical CPUs.
DeviceName parse_device_name(const std::string& name);

// "cpu:0", "cpu:1", ...: logical CPUs. Each is a device of its own, as many as a program likes, and
// all compute on the processor that there is. "gpu:0", "gpu:1", ...: the GPUs of this machine; they
// are looked for when the first is named.
struct NamedDevice {
  std::string name;  // DeviceName::text()
  Device* device;
};
//   Errors  parse_device_name()'s. NotFound: this machine has no such GPU; says why.
NamedDevice device_named(const std::string& name);

// One for each replica. None named: the processor alone. A GPU may be named more than once: the
// replicas then take turns on it.
//   Errors  device_named()'s. InvalidArgument: a logical CPU that is named twice.
std::vector<NamedDevice> devices_of(const std::vector<std::string>& names);

}  // namespace cairn
