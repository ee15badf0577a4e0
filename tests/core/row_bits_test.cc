// A row of a matrix product has the same bits whatever rows are beside it: what lets a served model
// compute examples together that came apart. Run once for each set of instructions that oneDNN has
// kernels for, since each has other tiles.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "core/kernels/cpu/gemm.h"

namespace cairn::testing {
namespace {

TEST(RowBitsTest, DoNotDependOnTheNumberOfRows) {
  constexpr std::int64_t kRowsMax = 300;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(-1, 1);
  for (const bool transpose_b : {false, true})
    for (const std::int64_t n : {1, 2, 7, 16, 64, 129, 512})
      for (const std::int64_t k : {1, 5, 64, 93, 500, 1500}) {
        std::vector<float> a(static_cast<std::size_t>(kRowsMax * k)),
            b(static_cast<std::size_t>(k * n)), all(static_cast<std::size_t>(kRowsMax * n)),
            some(all.size());
        for (float& each : a) each = value(random);
        for (float& each : b) each = value(random);
        gemm({kRowsMax, n, k, false, transpose_b, true}, a.data(), b.data(), all.data());
        for (std::int64_t rows = 1; rows < kRowsMax; rows += rows < 50 ? 1 : 23) {
          gemm({rows, n, k, false, transpose_b, true}, a.data(), b.data(), some.data());
          ASSERT_EQ(std::memcmp(some.data(), all.data(),
                                static_cast<std::size_t>(rows * n) * sizeof(float)),
                    0)
              << rows << " rows, k " << k << ", n " << n << (transpose_b ? ", b transposed" : "");
        }
      }
}

}  // namespace
}  // namespace cairn::testing
