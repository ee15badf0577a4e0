// register_with(): registers with a device the memory of a lane's rows and gradients.
#pragma once
#include "core/kernels/device.h"
#include "rpc/loop/memory_use.h"

namespace cairn::worker {

// Returns the function that registers memory with `device`, which outlives its results; empty if
// the device's memory is the host's. If the system does not allow it, copies take the longer way;
// the first time the log says so.
rpc::RegisterMemory register_with(Device& device);

}  // namespace cairn::worker
