// Single-precision matrix product on the calling thread.
#pragma once
#include <cstdint>
#include <functional>

#include "core/base/arithmetic.h"

namespace cairn {

struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;  // c [m, n] = a [m, k] x b [k, n]; row-major
  bool transpose_a = false;          // a is stored [k, m]
  bool transpose_b = false;          // b is stored [n, k]
};

//   Thread  any; starts no thread of its own.
//   Cost  2 m n k operations; transposed inputs are read through strides.
void gemm(const Gemm& shape, const float* a, const float* b, float* c);

// A product planned once. Thread: one at a time.
using Product = std::function<void(const float* a, const float* b, float* c)>;
Product plan_product(const Gemm& shape, Arithmetic arithmetic);

}  // namespace cairn
