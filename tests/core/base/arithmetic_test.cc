// Matrix products whose operands are rounded to bfloat16, on processors that have it and on those
// that do not.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/exec/executor.h"
#include "core/graph/ops.h"
#include "core/rows/local_store.h"
#include "core/tensor/bfloat16.h"
#include "tests/core/graph_testing.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using testing::noise;

Tensor rounded(const Tensor& x) {
  Tensor out = Tensor::zeros(x.dtype(), x.shape());
  round_to_bfloat16(x.values<float>().data(), static_cast<std::size_t>(x.elements()),
                    out.mutable_values<float>().data());
  return out;
}

Tensor value_of(const std::function<Array()>& made, Arithmetic arithmetic) {
  ConcreteFunction function =
      testing::trace_function({}, [&](const auto&) { return std::vector<Array>{made()}; });
  Workspace workspace;
  LocalStore store;
  return run(make_plan(function.graph, {}, {.products = arithmetic}), workspace, store, {}, {},
             {})[0];
}

// The results of both ways to compute a product: alone, and in one go with what follows it.
std::vector<Tensor> products(const Tensor& a, const Tensor& b, const Tensor& bias, bool transpose_a,
                             bool transpose_b, Arithmetic arithmetic) {
  auto product = [&] { return matmul(Array(a), Array(b), transpose_a, transpose_b); };
  return {value_of(product, arithmetic),
          value_of([&] { return relu(product() + Array(bias)); }, arithmetic)};
}

// Enough rows for several panels, the last of them smaller.
TEST(Products, WithWhatFollowsThemAreThoseComputedAlone) {
  const Tensor a = noise({1501, 21}, 1), b = noise({21, 100}, 2), bias = noise({100}, 3),
               other = noise({1501, 100}, 4), column = noise({1501, 1}, 5);
  for (Arithmetic arithmetic : {Arithmetic::kFloat32, Arithmetic::kBfloat16}) {
    const Tensor alone = value_of([&] { return matmul(Array(a), Array(b)); }, arithmetic);
    auto follow = [&](const std::function<Array(const Array&)>& what) {
      const Tensor want = value_of([&] { return what(Array(alone)); }, arithmetic);
      const Tensor got = value_of([&] { return what(matmul(Array(a), Array(b))); }, arithmetic);
      ASSERT_EQ(got.shape(), want.shape());
      for (std::size_t i = 0; i < static_cast<std::size_t>(want.elements()); ++i)
        ASSERT_NEAR(got.values<float>()[i], want.values<float>()[i], 1e-5) << i;
    };
    follow([&](const Array& c) { return relu(c + Array(bias)); });
    follow([&](const Array& c) { return where(greater(Array(other), 0.0f), c, 0.0f); });
    // one of two
    follow([&](const Array& c) { return c * Array(column) + matmul(Array(a), Array(b) * 2.0f); });
    follow([&](const Array& c) { return c * c; });
    // stretched: no longer the product's shape
    follow([&](const Array& c) { return c + Array(noise({2, 1501, 100}, 6)); });
  }
}

TEST(Products, OfNoRowsAreFollowedByNothing) {
  const Tensor none = value_of(
      [&] {
        return relu(matmul(Array(noise({0, 21}, 1)), Array(noise({21, 5}, 2))) + 1.0f);
      },
      Arithmetic::kFloat32);
  EXPECT_EQ(none.shape(), (Shape{0, 5}));
}

TEST(Bfloat16Products, AreThoseOfRoundedOperandsSummedInFloat32) {
  const Tensor bias = noise({9}, 3);
  for (bool transpose_a : {false, true})
    for (bool transpose_b : {false, true}) {
      const Tensor a = noise(transpose_a ? Shape{21, 33} : Shape{33, 21}, 1),
                   b = noise(transpose_b ? Shape{9, 21} : Shape{21, 9}, 2);
      const auto got = products(a, b, bias, transpose_a, transpose_b, Arithmetic::kBfloat16);
      const auto want =
          products(rounded(a), rounded(b), bias, transpose_a, transpose_b, Arithmetic::kFloat32);
      const auto exact = products(a, b, bias, transpose_a, transpose_b, Arithmetic::kFloat32);
      double moved = 0;
      for (std::size_t out = 0; out < got.size(); ++out)
        for (std::size_t i = 0; i < static_cast<std::size_t>(want[out].elements()); ++i) {
          ASSERT_NEAR(got[out].values<float>()[i], want[out].values<float>()[i], 1e-5)
              << transpose_a << transpose_b << " " << i;
          moved = std::max(moved, static_cast<double>(std::abs(got[out].values<float>()[i] -
                                                               exact[out].values<float>()[i])));
        }
      EXPECT_GT(moved, 1e-4);  // they were rounded
    }
}

TEST(Bfloat16Products, OfNothingAreZero) {
  const auto got = products(noise({2, 0}, 1), noise({0, 9}, 2), noise({9}, 3), false, false,
                            Arithmetic::kBfloat16);
  for (float value : got[0].values<float>()) EXPECT_EQ(value, 0);
}

TEST(Bfloat16, RoundsToNearestEvenAndKeepsNan) {
  const float from[] = {1.00390625f,
                        1.01171875f,
                        -0.0f,
                        std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN(),
                        std::numeric_limits<float>::max()};
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
