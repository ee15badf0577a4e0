// Convolution, pooling and normalisation against loops that say what they mean, over many shapes:
// whichever of oneDNN's implementations a shape leads to. Tolerance: 2e-5 of the largest number of
// the result.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "core/exec/executor.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using testing::noise;

using namespace testing;  // NOLINT
using Arrays = std::vector<Array>;
using Int = std::int64_t;

std::vector<Tensor> evaluate(const Arrays& arrays) {
  ConcreteFunction function = trace_function({}, [&](const auto&) { return arrays; });
  Workspace workspace;
  LocalStore store;
  return run(make_plan(function.graph, {}), workspace, store, {}, {}, {});
}

void expect_close(const Tensor& got, const std::vector<double>& want, const std::string& what) {
  ASSERT_EQ(static_cast<std::size_t>(got.elements()), want.size()) << what;
  double largest = 1;
  for (double x : want) largest = std::max(largest, std::fabs(x));
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got.values<float>()[i], want[i], 2e-5 * largest) << what << " element " << i;
}

// One axis of a window as the words of core/graph/ops_model.h have it, worked out anew.
struct Axis {
  Int in, size, stride, dilation, out, before;
};
Axis axis_of(Int in, Int size, Int stride, Int dilation, Padding padding) {
  Int reach = (size - 1) * dilation + 1;
  if (padding == Padding::kValid) return {in, size, stride, dilation, (in - reach) / stride + 1, 0};
  Int out = (in + stride - 1) / stride;
  return {in, size, stride, dilation, out, std::max<Int>((out - 1) * stride + reach - in, 0) / 2};
}

// Calls f(index in y, index in x, ky, kx) for each place of an image that each window of channel 0
// covers.
template <typename F>
void for_each_place(Int batch, const Axis& down, const Axis& across, F f) {
  for (Int b = 0; b < batch; ++b)
    for (Int oy = 0; oy < down.out; ++oy)
      for (Int ox = 0; ox < across.out; ++ox)
        for (Int ky = 0; ky < down.size; ++ky)
          for (Int kx = 0; kx < across.size; ++kx) {
            Int y = oy * down.stride - down.before + ky * down.dilation,
                x = ox * across.stride - across.before + kx * across.dilation;
            if (y < 0 || y >= down.in || x < 0 || x >= across.in) continue;
            f((b * down.out + oy) * across.out + ox, (b * down.in + y) * across.in + x, ky, kx);
          }
}

struct ConvShape {
  Int batch, height, width, channels, fh, fw, filters;
  Conv2dOptions options;
};

void check_convolution(const ConvShape& s) {
  Axis down =
      axis_of(s.height, s.fh, s.options.strides[0], s.options.dilations[0], s.options.padding);
  Axis across =
      axis_of(s.width, s.fw, s.options.strides[1], s.options.dilations[1], s.options.padding);
  Tensor x = noise({s.batch, s.height, s.width, s.channels}, 1),
         filter = noise({s.fh, s.fw, s.channels, s.filters}, 2);
  Tensor dy = noise({s.batch, down.out, across.out, s.filters}, 3);
  std::vector<Tensor> got =
      evaluate({conv2d(x, filter, s.options), conv2d_grad_input(dy, filter, x, s.options),
                conv2d_grad_filter(dy, x, filter, s.options)});
  ASSERT_EQ(got[0].shape(), dy.shape());
  auto zeros = [](const Tensor& t) {
    return std::vector<double>(static_cast<std::size_t>(t.elements()));
  };
  std::vector<double> y = zeros(dy), dx = zeros(x), df = zeros(filter);
  auto at = [](const Tensor& t, Int i) {
    return static_cast<double>(t.values<float>()[static_cast<std::size_t>(i)]);
  };
  for_each_place(s.batch, down, across, [&](Int to, Int from, Int ky, Int kx) {
    for (Int c = 0; c < s.channels; ++c)
      for (Int n = 0; n < s.filters; ++n) {
        Int ix = from * s.channels + c, iy = to * s.filters + n,
            iw = ((ky * s.fw + kx) * s.channels + c) * s.filters + n;
        y[static_cast<std::size_t>(iy)] += at(x, ix) * at(filter, iw);
        dx[static_cast<std::size_t>(ix)] += at(dy, iy) * at(filter, iw);
        df[static_cast<std::size_t>(iw)] += at(dy, iy) * at(x, ix);
      }
  });
  expect_close(got[0], y, "y");
  expect_close(got[1], dx, "dx");
  expect_close(got[2], df, "dfilter");
}

TEST(Convolution, AgreesWithPlainLoopsForwardAndBackward) {
  const Conv2dOptions same{{1, 1}, Padding::kSame}, strided{{2, 3}, Padding::kSame},
      dilated{{1, 1}, Padding::kSame, {2, 3}};
  const Conv2dOptions sparse{{4, 4}, Padding::kValid};
  const ConvShape shapes[] = {{2, 6, 7, 3, 3, 3, 4, {}},         {2, 9, 8, 8, 3, 3, 16, same},
                              {1, 7, 7, 16, 5, 1, 8, strided},   {3, 5, 5, 1, 3, 3, 1, same},
                              {2, 8, 9, 17, 2, 3, 5, dilated},   {1, 9, 9, 32, 3, 3, 32, {}},
                              {2, 4, 4, 6, 1, 1, 24, same},      {4, 10, 3, 2, 2, 2, 3, sparse},
                              {1, 3, 2, 4, 5, 5, 8, same},       {2, 2, 2, 3, 2, 2, 2, dilated},
                              {1, 12, 12, 64, 3, 3, 40, strided}};
  for (const ConvShape& s : shapes) {
    SCOPED_TRACE(str(s.batch, "x", s.height, "x", s.width, "x", s.channels, " by ", s.fh, "x", s.fw,
                     " to ", s.filters));
    check_convolution(s);
  }
}

struct PoolShape {
  Int batch, height, width, channels;
  Pool2dOptions options;
};

void check_pooling(const PoolShape& s) {
  Axis down = axis_of(s.height, s.options.window[0], s.options.strides[0], 1, s.options.padding);
  Axis across = axis_of(s.width, s.options.window[1], s.options.strides[1], 1, s.options.padding);
  Tensor x = noise({s.batch, s.height, s.width, s.channels}, 4),
         dy = noise({s.batch, down.out, across.out, s.channels}, 5);
  const Pool2dOptions& o = s.options;
  std::vector<Tensor> got = evaluate(
      {max_pool2d(x, o), max_pool2d_grad(dy, x, o), avg_pool2d(x, o), avg_pool2d_grad(dy, x, o)});
  auto outs = static_cast<std::size_t>(dy.elements()), ins = static_cast<std::size_t>(x.elements());
  std::vector<double> largest(outs, -std::numeric_limits<double>::infinity()), total(outs),
      count(outs), dmax(ins), davg(ins);
  std::vector<std::size_t> place(outs);
  auto each = [&](auto f) {
    for_each_place(s.batch, down, across, [&](Int to, Int from, Int, Int) {
      for (Int c = 0; c < s.channels; ++c)
        f(static_cast<std::size_t>(to * s.channels + c),
          static_cast<std::size_t>(from * s.channels + c));
    });
  };
  each([&](std::size_t to, std::size_t i) {
    double value = x.values<float>()[i];
    total[to] += value;
    count[to] += 1;
    if (value > largest[to]) largest[to] = value, place[to] = i;
  });
  each([&](std::size_t to, std::size_t i) { davg[i] += dy.values<float>()[to] / count[to]; });
  for (std::size_t to = 0; to < outs; ++to) {
    total[to] /= count[to];
    dmax[place[to]] += dy.values<float>()[to];
  }
  expect_close(got[0], largest, "max");
  expect_close(got[1], dmax, "dx of max");
  expect_close(got[2], total, "mean");
  expect_close(got[3], davg, "dx of mean");
}

TEST(Pooling, AgreesWithPlainLoopsForwardAndBackward) {
  const Pool2dOptions overlapping{{3, 3}, {1, 2}, Padding::kSame},
      narrow{{1, 4}, {3, 1}, Padding::kValid}, wide{{2, 2}, {3, 3}, Padding::kSame};
  const PoolShape shapes[] = {{2, 6, 6, 3, {}},           {2, 7, 5, 8, overlapping},
                              {1, 4, 9, 16, narrow},      {3, 8, 8, 17, wide},
                              {1, 5, 5, 32, overlapping}, {2, 2, 2, 1, {}}};
  for (const PoolShape& s : shapes) {
    SCOPED_TRACE(str(s.batch, "x", s.height, "x", s.width, "x", s.channels));
    check_pooling(s);
  }
}

TEST(Pooling, TheFirstOfEqualElementsGetsTheGradient) {
  Tensor x = Tensor::zeros(DType::kFloat32, {1, 2, 4, 8}), dy = noise({1, 1, 2, 8}, 6);
  Tensor dx = evaluate({max_pool2d_grad(dy, x, {})})[0];
  for (std::size_t i = 0; i < 64; ++i) {
    bool first = i < 8 || (i >= 16 && i < 24);
    EXPECT_EQ(dx.values<float>()[i], first ? dy.values<float>()[i < 8 ? i : i - 8] : 0) << i;
  }
}

// ---- normalisation of a table [rows, n]: by its rows (layer) or by its columns (batch) ----

enum class By : std::uint8_t { kRows, kColumns };

void check_normalisation(Int rows, Int n, By by) {
  constexpr double kEpsilon = 1e-3;
  Tensor x = noise({rows, n}, 7), gamma = noise({n}, 8), beta = noise({n}, 9),
         dy = noise({rows, n}, 10);
  Array ax = x, ag = gamma, ab = beta;
  Array y = by == By::kRows ? layer_norm(ax, ag, ab) : batch_norm(ax, ag, ab).y;
  Arrays wanted = {y};
  for (const Array& gradient : grad(sum(y * Array(dy)), {ax, ag, ab})) wanted.push_back(gradient);
  std::vector<Tensor> got = evaluate(wanted);
  auto at = [](const Tensor& t, Int i) {
    return static_cast<double>(t.values<float>()[static_cast<std::size_t>(i)]);
  };
  std::vector<double> out(static_cast<std::size_t>(rows * n)), dx(out.size()),
      dgamma(static_cast<std::size_t>(n)), dbeta(dgamma.size());
  Int groups = by == By::kRows ? rows : n, members = by == By::kRows ? n : rows;
  for (Int g = 0; g < groups; ++g) {
    auto place = [&](Int m) { return by == By::kRows ? g * n + m : m * n + g; };
    double mean = 0, variance = 0, sum = 0, product = 0;
    for (Int m = 0; m < members; ++m) mean += at(x, place(m)) / static_cast<double>(members);
    for (Int m = 0; m < members; ++m)
      variance += std::pow(at(x, place(m)) - mean, 2) / static_cast<double>(members);
    double inverse = 1 / std::sqrt(variance + kEpsilon);
    for (Int m = 0; m < members; ++m) {
      Int i = place(m), column = i % n;
      double normal = (at(x, i) - mean) * inverse;
      out[static_cast<std::size_t>(i)] = normal * at(gamma, column) + at(beta, column);
      sum += at(dy, i) * at(gamma, column);
      product += at(dy, i) * at(gamma, column) * normal;
      dgamma[static_cast<std::size_t>(column)] += at(dy, i) * normal;
      dbeta[static_cast<std::size_t>(column)] += at(dy, i);
    }
    for (Int m = 0; m < members; ++m) {
      Int i = place(m);
      double normal = (at(x, i) - mean) * inverse;
      dx[static_cast<std::size_t>(i)] =
          inverse *
          (at(dy, i) * at(gamma, i % n) - (sum + normal * product) / static_cast<double>(members));
    }
  }
  expect_close(got[0], out, "y");
  expect_close(got[1], dx, "dx");
  expect_close(got[2], dgamma, "dgamma");
  expect_close(got[3], dbeta, "dbeta");
}

TEST(Normalisation, AgreesWithPlainLoopsForwardAndBackward) {
  for (By by : {By::kRows, By::kColumns})
    for (auto [rows, n] :
         std::vector<std::pair<Int, Int>>{{4, 3}, {16, 8}, {33, 16}, {7, 100}, {64, 5}, {2, 256}}) {
      SCOPED_TRACE(str(by == By::kRows ? "layer " : "batch ", rows, "x", n));
      check_normalisation(rows, n, by);
    }
}

TEST(Normalisation, OfABatchGivesItsMeanAndVarianceForRunningAverages) {
  BatchNorm made = batch_norm(tensor({4, 2}, {1, 10, 2, 10, 3, 10, 6, 10}), tensor({2}, {1, 1}),
                              tensor({2}, {0, 0}));
  std::vector<Tensor> got = evaluate({made.mean, made.variance});
  expect_close(got[0], {3, 10}, "mean");
  expect_close(got[1], {3.5, 0}, "variance");
}

}  // namespace
}  // namespace cairn
