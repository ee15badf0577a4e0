// Operations that have to do with strings, which lie in host memory on every device.
#pragma once
#include "core/kernels/cuda/runtime/queue.h"
#include "core/kernels/kernel.h"

namespace cairn::cuda {

// Runs a CPU kernel where the queue has come to it: waits, copies what it reads from the device,
// runs it, and copies what it made to the device.
KernelRun run_on_host(Queue& queue, KernelRun run, const KernelTypes& types);

}  // namespace cairn::cuda
