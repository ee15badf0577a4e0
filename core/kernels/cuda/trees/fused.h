// Trees of elementwise operations as kernels of their own.
#pragma once
#include <memory>

#include "core/kernels/cuda/runtime/queue.h"
#include "core/kernels/fused_tree.h"
#include "core/kernels/kernel.h"

namespace cairn::cuda {

// One launch, with a matrix product before it if the tree begins with one. A bias and a relu that
// follow the product are computed inside it.
//   Errors  InvalidArgument: an operation of the tree has no kernel for its dtypes. A run reports
//           an integer that is divided by zero.
KernelRun fuse(Queue& queue, const FusedTree& tree);

}  // namespace cairn::cuda
