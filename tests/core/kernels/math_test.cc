// The vectorised elementary functions against <cmath> in double.
#include "core/kernels/cpu/math.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/kernels/cpu/elementwise.h"
#include "core/tensor/tensor.h"

namespace cairn {
namespace {

struct Range {
  float low, high;
};

std::vector<float> samples(Range range) {
  std::vector<float> all;
  for (int i = 0; i <= 20'000; ++i)
    all.push_back(range.low + (range.high - range.low) * static_cast<float>(i) / 20'000);
  for (float scale = range.high; std::fabs(scale) > 1e-30f; scale /= 7)  // and ever closer to zero
    for (float x : {scale, -scale})
      if (x >= range.low && x <= range.high) all.push_back(x);
  return all;
}

// The largest relative error of the kernel of `op`, as it is compiled for this machine.
double worst_error(std::string_view op, Range range, const std::function<double(double)>& want) {
  std::vector<float> x = samples(range), y(x.size());
  DType types[] = {DType::kFloat32};
  find_block_op(op, types, DType::kFloat32)(reinterpret_cast<const std::byte*>(x.data()), nullptr,
                                            nullptr, reinterpret_cast<std::byte*>(y.data()),
                                            x.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double expected = want(x[i]);
    if (std::fabs(expected) < 1e-37) continue;
    worst = std::max(worst, std::fabs(y[i] - expected) / std::fabs(expected));
  }
  return worst;
}

TEST(Math, IsAccurateToAFewUnitsInTheLastPlace) {
  constexpr double kBound = 5e-7;
  EXPECT_LT(worst_error("exp", {-87, 88.7f}, [](double x) { return std::exp(x); }), kBound);
  EXPECT_LT(worst_error("log", {1e-30f, 1e30f}, [](double x) { return std::log(x); }), kBound);
  EXPECT_LT(worst_error("log", {0.5f, 2}, [](double x) { return std::log(x); }), kBound);
  EXPECT_LT(worst_error("log1p", {-0.999f, 100}, [](double x) { return std::log1p(x); }), kBound);
  EXPECT_LT(worst_error("sigmoid", {-80, 80}, [](double x) { return 1 / (1 + std::exp(-x)); }),
            kBound);
  EXPECT_LT(worst_error("tanh", {-12, 12}, [](double x) { return std::tanh(x); }), kBound);
  EXPECT_LT(worst_error("softplus", {-80, 80}, [](double x) { return std::log1p(std::exp(x)); }),
            kBound);
}

TEST(Math, EndsOfTheRangeAreAsInTheStandardLibrary) {
  float inf = math::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(math::exp(200), inf);
  EXPECT_EQ(math::exp(-200), 0);
  EXPECT_EQ(math::exp(inf), inf);
  EXPECT_EQ(math::exp(-inf), 0);
  EXPECT_EQ(math::exp(0), 1);
  EXPECT_EQ(math::log(0), -inf);
  EXPECT_EQ(math::log(inf), inf);
  EXPECT_TRUE(std::isnan(math::log(-1)));
  EXPECT_EQ(math::log(1), 0);
  EXPECT_EQ(math::log1p(-1), -inf);
  EXPECT_EQ(math::log1p(inf), inf);
  EXPECT_EQ(math::log1p(1e-20f), 1e-20f);
  EXPECT_EQ(math::tanh(inf), 1);
  EXPECT_EQ(math::tanh(-100), -1);
  EXPECT_EQ(math::sigmoid(-inf), 0);
  EXPECT_EQ(math::sigmoid(inf), 1);
  EXPECT_EQ(math::softplus(inf), inf);
  for (auto f : {math::exp, math::log, math::log1p, math::tanh, math::sigmoid, math::softplus})
    EXPECT_TRUE(std::isnan(f(nan)));
}

}  // namespace
}  // namespace cairn
