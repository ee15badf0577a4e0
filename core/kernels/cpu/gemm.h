// Single-precision matrix products on the calling thread. A lane computes on its own thread, and
// lanes are what uses several cores, so that a product that started a team would only take cores
// from others.
#pragma once
#include <functional>

#include "core/base/arithmetic.h"
#include "core/kernels/gemm.h"

namespace cairn {

// c = a x b, overwriting c. k = 0 gives zeros.
//   Errors  ResourceExhausted: oneDNN finds no memory.
//   Thread  any; starts no thread of its own.
//   Cost  2 m n k operations; transposed inputs are read through strides.
void gemm(const Gemm& shape, const float* a, const float* b, float* c);

// A product of one shape, planned once and with scratch of its own. Where the processor lacks
// bfloat16 instructions, kBfloat16 rounds the operands and multiplies in float32, which gives the
// same numbers but for the order of summing.
//   Thread  one at a time.
using Product = std::function<void(const float* a, const float* b, float* c)>;
Product plan_product(const Gemm& shape, Arithmetic arithmetic);

}  // namespace cairn
