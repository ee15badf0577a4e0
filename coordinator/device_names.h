// The devices that a strategy of one process computes on, by the names that programs give them.
#pragma once
#include <string>
#include <vector>

#include "core/kernels/device.h"

namespace cairn {

inline constexpr int kLogicalCpusMax = 64;

// The number of a logical CPU, [0, kLogicalCpusMax), by its name.
//   Errors  InvalidArgument: a name that means no device.
int logical_cpu(const std::string& name);

// "cpu:0", "cpu:1", ...: logical CPUs. Each is a device of its own, as many as a program likes, and
// all compute on the processor that there is. "CPU:0", "/cpu:0" and "/device:CPU:0" mean the same.
// No names: all devices that are there, which is one, the processor.
struct NamedDevice {
  std::string name;  // "cpu:0", whatever it was called
  Device* device;
};
//   Errors  InvalidArgument: a name that means no device, or a device that is named twice.
std::vector<NamedDevice> devices_of(const std::vector<std::string>& names);

}  // namespace cairn
