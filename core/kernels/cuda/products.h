// Matrix products on a queue, in the arithmetic that their shape names.
#pragma once
#include <functional>

#include "core/kernels/cuda/queue.h"

namespace cairn::cuda {

// Enqueues c = a x b, all of them float32. Thread: the queue's.
using Multiply = std::function<void(const float* a, const float* b, const float* bias, float* c)>;
Multiply plan_multiply(Queue& queue, const ProductShape& shape);

}  // namespace cairn::cuda
