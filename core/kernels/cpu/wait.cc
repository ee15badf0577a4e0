// The operation that stands in for arithmetic where only what lies around it is to be measured, as
// in the benchmark of growth by workers: many workers can wait on two cores, where they could not
// compute.
#include <chrono>
#include <cstring>
#include <thread>

#include "core/kernels/cpu/kernel_table.h"

namespace cairn {
namespace {

// The thread sleeps, as long as it would be busy with a product: its lane does nothing else
// meanwhile.
KernelRun prepare_wait_for(const KernelTypes& types) {
  const std::chrono::duration<double> time(types.attributes.get<double>("seconds"));
  const std::size_t bytes = static_cast<std::size_t>(types.outputs[0].shape.elements()) *
                            dtype_bytes(types.outputs[0].dtype);
  return [time, bytes](const KernelCall& call) {
    std::this_thread::sleep_for(time);
    if (bytes > 0) std::memcpy(call.outputs[0], call.inputs[0], bytes);
  };
}

constexpr CpuKernel kWaitKernels[] = {{"wait_for", prepare_wait_for}};

}  // namespace

std::span<const CpuKernel> wait_kernels() { return kWaitKernels; }

}  // namespace cairn
