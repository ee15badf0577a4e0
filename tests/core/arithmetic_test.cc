// Matrix products whose operands are rounded to bfloat16, on processors that have it and on those that do not.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/bfloat16.h"
#include "core/executor.h"
#include "core/local_store.h"
#include "core/ops.h"
#include "tests/core/graph_testing.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using testing::noise;

Tensor rounded(const Tensor& x) {
  Tensor out = Tensor::zeros(x.dtype(), x.shape());
  round_to_bfloat16(x.values<float>().data(), static_cast<std::size_t>(x.elements()), out.mutable_values<float>().data());
  return out;
}

// Of both ways to compute a product: alone, and with what follows it in one go.
std::vector<Tensor> products(const Tensor& a, const Tensor& b, const Tensor& bias, bool transpose_a, bool transpose_b, Arithmetic arithmetic) {
  ConcreteFunction function = testing::trace_function({}, [&](const auto&) {
    return std::vector<Array>{matmul(Array(a), Array(b), transpose_a, transpose_b), relu(matmul(Array(a), Array(b), transpose_a, transpose_b) + Array(bias))};
  });
  Workspace workspace;
  LocalStore store;
  return run(make_plan(function.graph, {}, {.products = arithmetic}), workspace, store, {}, {}, {});
}

TEST(Bfloat16Products, AreThoseOfRoundedOperandsSummedInFloat32) {
  const Tensor bias = noise({9}, 3);
  for (bool transpose_a : {false, true})
    for (bool transpose_b : {false, true}) {
      const Tensor a = noise(transpose_a ? Shape{21, 33} : Shape{33, 21}, 1), b = noise(transpose_b ? Shape{9, 21} : Shape{21, 9}, 2);
      const auto got = products(a, b, bias, transpose_a, transpose_b, Arithmetic::kBfloat16);
      const auto want = products(rounded(a), rounded(b), bias, transpose_a, transpose_b, Arithmetic::kFloat32);
      const auto exact = products(a, b, bias, transpose_a, transpose_b, Arithmetic::kFloat32);
      double moved = 0;
      for (std::size_t out = 0; out < got.size(); ++out)
        for (std::size_t i = 0; i < static_cast<std::size_t>(want[out].elements()); ++i) {
          ASSERT_NEAR(got[out].values<float>()[i], want[out].values<float>()[i], 1e-5) << transpose_a << transpose_b << " " << i;
          moved = std::max(moved, static_cast<double>(std::abs(got[out].values<float>()[i] - exact[out].values<float>()[i])));
        }
      EXPECT_GT(moved, 1e-4);  // they were rounded
    }
}

TEST(Bfloat16Products, OfNothingAreZero) {
  const auto got = products(noise({2, 0}, 1), noise({0, 9}, 2), noise({9}, 3), false, false, Arithmetic::kBfloat16);
  for (float value : got[0].values<float>()) EXPECT_EQ(value, 0);
}

TEST(Bfloat16, RoundsToNearestEvenAndKeepsNan) {
  const float from[] = {1.00390625f, 1.01171875f, -0.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::max()};
  float to[6], back[6];
  std::byte narrow[12];
  round_to_bfloat16(from, 6, to);
  narrow_to_bfloat16(from, 6, narrow);
  widen_from_bfloat16(narrow, 6, back);
  EXPECT_EQ(to[0], 1.0f);
  EXPECT_EQ(to[1], 1.015625f);
  EXPECT_TRUE(std::signbit(to[2]));
  EXPECT_TRUE(std::isinf(to[3]));
  EXPECT_TRUE(std::isnan(to[4]));
  EXPECT_TRUE(std::isinf(to[5]));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(back[i] == to[i] || i == 4) << i;
}

}  // namespace
}  // namespace cairn
