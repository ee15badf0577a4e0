// The kernels of the CPU, by operation.
#pragma once
#include <span>
#include <string_view>

#include "core/kernels/kernel.h"

namespace cairn {

// An entry of the table: an operation and how it is prepared. The graph was verified before, so
// prepare() need not check dtypes and shapes again.
//   Errors of prepare()  Unimplemented: the CPU has no kernel for these dtypes or shapes;
//   InvalidArgument: shapes that only now are known do not fit.
struct CpuKernel {
  std::string_view op;
  KernelRun (*prepare)(const KernelTypes& types);
};

// The kernel of an operation. nullptr: it has none; elementwise operations have a BlockOp instead
// (core/kernels/cpu/elementwise.h).
//   Thread  any.
const CpuKernel* find_cpu_kernel(std::string_view op);

// One part of the table per file.
std::span<const CpuKernel> matmul_kernels();
std::span<const CpuKernel> reduction_kernels();
std::span<const CpuKernel> softmax_kernels();
std::span<const CpuKernel> shape_kernels();
std::span<const CpuKernel> piece_kernels();
std::span<const CpuKernel> indexing_kernels();
std::span<const CpuKernel> arrange_kernels();
std::span<const CpuKernel> selection_kernels();
std::span<const CpuKernel> scatter_kernels();
std::span<const CpuKernel> convolution_kernels();
std::span<const CpuKernel> pooling_kernels();
std::span<const CpuKernel> normalise_kernels();
std::span<const CpuKernel> random_kernels();
std::span<const CpuKernel> recommendation_kernels();
std::span<const CpuKernel> string_kernels();
std::span<const CpuKernel> wait_kernels();

}  // namespace cairn
