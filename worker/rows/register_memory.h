// register_with(): a device is told of the memory in which a lane's rows and gradients travel.
#pragma once
#include "core/kernels/device.h"
#include "rpc/loop/memory_use.h"

namespace cairn::worker {

// What registers memory with `device`, which outlives what that returns; empty: the device's memory
// is the host's. Where the system does not allow it, copies take the longer way; the first time the
// log says so.
rpc::RegisterMemory register_with(Device& device);

}  // namespace cairn::worker
