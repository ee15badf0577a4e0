// Matrix products as FakeDriver computes them: slowly, and in double.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/kernels/cuda/runtime/driver.h"
#include "core/tensor/bfloat16.h"

namespace cairn::testing {

inline std::vector<float> as_floats(const void* from, std::int64_t n, bool narrow) {
  std::vector<float> made(static_cast<std::size_t>(n));
  if (narrow)
    widen_from_bfloat16(static_cast<const std::byte*>(from), made.size(), made.data());
  else
    std::copy_n(static_cast<const float*>(from), made.size(), made.data());
  return made;
}
inline float element(const float* from, std::int64_t rows, std::int64_t columns, bool transposed,
                     std::int64_t i, std::int64_t j) {
  return transposed ? from[j * rows + i] : from[i * columns + j];
}
inline std::vector<float> multiply(const cuda::ProductShape& s, const std::vector<float>& all_a,
                                   const std::vector<float>& all_b,
                                   const std::vector<float>& bias) {
  const auto& [m, n, k, ta, tb, alike] = s.gemm;
  const float *a = all_a.data(), *b = all_b.data();
  std::vector<float> results(static_cast<std::size_t>(s.batch * m * n));
  float* c = results.data();
  for (std::int64_t at = 0; at < s.batch; ++at, a += m * k, b += k * n)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = s.bias ? bias[static_cast<std::size_t>(j)] : 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(element(a, m, k, ta, i, l)) * element(b, k, n, tb, l, j);
        const auto made = static_cast<float>(sum);
        *c++ = s.relu && made < 0 ? 0 : made;
      }
  return results;
}

// As a ProductRun of the shape has it.
inline void run_product(const cuda::ProductShape& s, const cuda::ProductMemory& at) {
  const bool rounds = rounds_to_bfloat16(s.arithmetic);
  const auto& [m, n, k, ta, tb, alike] = s.gemm;
  auto made = multiply(s, as_floats(at.a, s.batch * m * k, rounds),
                       as_floats(at.b, s.batch * k * n, rounds),
                       s.bias ? as_floats(at.bias, n, s.narrow_result) : std::vector<float>());
  if (s.narrow_result)
    narrow_to_bfloat16(made.data(), made.size(), at.c);
  else
    std::ranges::copy(made, reinterpret_cast<float*>(at.c));
}

}  // namespace cairn::testing
