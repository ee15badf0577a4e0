// Matrix products on a queue, in the arithmetic that their shape names.
#pragma once
#include <array>
#include <functional>

#include "core/kernels/cuda/runtime/queue.h"

namespace cairn::cuda {

// Enqueues c = a x b. Factors lie as `factors` said: float32, or bfloat16 where the arithmetic
// rounds to it, and so does the bias; c as ProductShape has it. Thread: the queue's.
using Multiply = std::function<void(const ProductMemory& at)>;
Multiply plan_multiply(Queue& queue, const ProductShape& shape, std::array<DType, 2> factors,
                       DType bias = DType::kFloat32);

}  // namespace cairn::cuda
