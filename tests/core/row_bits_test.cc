// An example has the same bits whatever examples are beside it: what lets a served model compute
// examples together that came apart. Run once for each set of instructions that oneDNN has
// kernels for, since each has other tiles.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "core/graph/ops.h"
#include "core/graph/ops_model.h"
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

Tensor random_tensor(Shape shape, std::mt19937& random) {
  std::uniform_real_distribution<float> value(-1, 1);
  Tensor made(DType::kFloat32, std::move(shape));
  for (float& each : made.mutable_values<float>()) each = value(random);
  return made;
}

TEST(RowBitsTest, OfAnOperationDoNotDependOnTheNumberOfExamples) {
  constexpr std::int64_t kExamples = 70;
  std::mt19937 random(2);
  const Array filter(random_tensor({3, 3, 3, 8}, random)),
      points(random_tensor({1, 1, 3, 16}, random)), scale(random_tensor({12}, random)),
      kernel(random_tensor({12, 9}, random));
  struct Case {
    const char* name;
    Shape example;
    std::function<Array(const Array&)> run;
  };
  const std::vector<Case> cases{
      {"conv2d", {11, 9, 3}, [&](const Array& x) { return conv2d(x, filter); }},
      {"conv2d of points", {11, 9, 3}, [&](const Array& x) { return conv2d(x, points); }},
      {"avg_pool2d", {8, 8, 3}, [](const Array& x) { return avg_pool2d(x); }},
      {"batch_matmul", {6, 12}, [](const Array& x) { return batch_matmul(x, x, false, true); }},
      {"dot_interaction", {6, 12}, [](const Array& x) { return dot_interaction(x); }},
      {"layer_norm", {12}, [&](const Array& x) { return layer_norm(x, scale, scale); }},
      {"softmax", {12}, [](const Array& x) { return softmax(x); }},
      {"reduce_sum", {6, 12}, [](const Array& x) { return reduce_sum(x, {1}); }},
      {"dense", {12}, [&](const Array& x) { return tanh(matmul(x, kernel) * 2.0f); }},
  };
  for (const Case& each : cases) {
    const Tensor x = random_tensor(each.example.with_front(kExamples), random);
    const Tensor all = each.run(Array(x)).eval();
    for (std::int64_t n = 1; n < kExamples; n += n < 20 ? 1 : 7) {
      const Tensor some = each.run(Array(x.rows(0, n))).eval();
      ASSERT_EQ(std::memcmp(some.raw(), all.raw(), some.bytes()), 0)
          << each.name << " of " << n << " examples";
    }
  }
}

}  // namespace
}  // namespace cairn::testing
