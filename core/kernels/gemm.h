// The shape of a matrix product.
#pragma once
#include <cstdint>

namespace cairn {

struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;  // c [m, n] = a [m, k] x b [k, n]; row-major
  bool transpose_a = false;          // a is stored [k, m]
  bool transpose_b = false;          // b is stored [n, k]
  // A row of c has the same bits for the same row of a, however many rows a has. On the CPU, and
  // unless a is transposed or operands are narrowed.
  bool rows_alike = false;
};

}  // namespace cairn
