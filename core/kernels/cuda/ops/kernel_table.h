// The kernels of CUDA devices, by operation.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/kernels/cuda/runtime/faults.h"
#include "core/kernels/cuda/runtime/queue.h"
#include "core/kernels/kernel.h"

namespace cairn::cuda {

// An operation and how it is prepared for a queue. A run enqueues work and returns; it neither
// allocates nor waits, so that it can be recorded and replayed. The graph was verified before.
//   Errors of prepare()  Unimplemented: no kernel for these dtypes or shapes; InvalidArgument:
//   shapes that only now are known do not fit.
struct Kernel {
  std::string_view op;
  KernelRun (*prepare)(Queue& queue, const KernelTypes& types);
};

// nullptr: there is none; elementwise operations are computed by fused trees (fused.h).
//   Thread  any.
const Kernel* find_kernel(std::string_view op);

// One part of the table per file.
std::span<const Kernel> arrange_kernels();
std::span<const Kernel> convolution_kernels();
std::span<const Kernel> indexing_kernels();
std::span<const Kernel> matmul_kernels();
std::span<const Kernel> normalise_kernels();
std::span<const Kernel> piece_kernels();
std::span<const Kernel> pooling_kernels();
std::span<const Kernel> random_kernels();
std::span<const Kernel> recommendation_kernels();
std::span<const Kernel> reduction_kernels();
std::span<const Kernel> scatter_kernels();
std::span<const Kernel> selection_kernels();
std::span<const Kernel> shape_kernels();
std::span<const Kernel> softmax_kernels();

// "gather(float32[3, 2], int64[2]): " and `what`.
std::string fault_text(std::string_view op, std::span<const TensorType> inputs,
                       std::string_view what);
// The error of an id at a position, outside [0, bound); a kernel reports (position, id).
std::shared_ptr<const FaultSite> id_fault(Queue& queue, std::string_view op,
                                          const KernelTypes& types, std::int64_t bound);

}  // namespace cairn::cuda
