// Convolutions on a CUDA device against the CPU's.
#include <gtest/gtest.h>

#include "core/graph/ops_model.h"
#include "tests/core/executor_testing.h"
#include "tests/core/kernels/cuda/some_gpu.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

struct Images {
  std::int64_t batch, rows, columns, in, window_rows, window_columns, out;
  Conv2dOptions options = {};
};

// Numbers that bfloat16 represents exactly, so that rounding to it changes nothing.
Tensor rounded_noise(const Shape& shape, std::uint64_t seed) {
  Tensor made = testing::noise(shape, seed);
  for (float& x : made.mutable_values<float>()) x = from_bfloat16(to_bfloat16(x));
  return made;
}

std::vector<Tensor> convolved(Device& device, Arithmetic arithmetic, const Images& s) {
  const Tensor x = rounded_noise({s.batch, s.rows, s.columns, s.in}, 1),
               filter = rounded_noise({s.window_rows, s.window_columns, s.in, s.out}, 2);
  const ConcreteFunction function = testing::trace_function({}, [&](const auto&) {
    const Array y = conv2d(Array(x), Array(filter), s.options);
    const Array dy(rounded_noise(y.shape(), 3));
    return std::vector<Array>{y, conv2d_grad_input(dy, Array(filter), Array(x), s.options),
                              conv2d_grad_filter(dy, Array(x), Array(filter), s.options)};
  });
  Workspace workspace(device);
  LocalStore store;
  return run(make_plan(function.graph, {}, {.products = arithmetic}), workspace, store, {}, {}, {});
}

void expect_as_on_the_cpu(const Images& s, Arithmetic arithmetic) {
  SCOPED_TRACE(str(s.batch, "x", s.rows, "x", s.columns, "x", s.in, " by ", s.window_rows, "x",
                   s.window_columns, " to ", s.out, ", ", arithmetic_name(arithmetic)));
  const testing::SomeGpu on;
  const auto want = convolved(cpu_device(), Arithmetic::kFloat32, s),
             got = convolved(*on.gpu, arithmetic, s);
  for (std::size_t value = 0; value < want.size(); ++value) {
    ASSERT_EQ(got[value].type(), want[value].type());
    const auto w = want[value].values<float>(), g = got[value].values<float>();
    for (std::size_t i = 0; i < w.size(); ++i)
      ASSERT_NEAR(g[i], w[i], 1e-4 * (1 + std::abs(w[i]))) << "value " << value << " at " << i;
  }
}

TEST(CudaConvolution, HasTheCpusValuesInEveryArithmetic) {
  const Conv2dOptions same{{1, 1}, Padding::kSame}, strided{{2, 3}, Padding::kSame},
      dilated{{1, 1}, Padding::kSame, {2, 3}}, sparse{{4, 4}, Padding::kValid};
  for (const Images& s : {Images{2, 6, 7, 3, 3, 3, 4}, Images{2, 9, 8, 8, 3, 3, 16, same},
                          Images{1, 7, 7, 16, 5, 1, 8, strided}, Images{3, 5, 5, 1, 3, 3, 1, same},
                          Images{2, 8, 9, 17, 2, 3, 5, dilated}, Images{2, 4, 4, 6, 1, 1, 24, same},
                          Images{4, 10, 3, 2, 2, 2, 3, sparse}, Images{1, 3, 2, 4, 5, 5, 8, same},
                          Images{2, 2, 2, 3, 2, 2, 2, dilated}})
    for (Arithmetic arithmetic : {Arithmetic::kFloat32, Arithmetic::kTf32, Arithmetic::kBfloat16,
                                  Arithmetic::kMixedBfloat16})
      expect_as_on_the_cpu(s, arithmetic);
}

// 68 MB of patches in float32, 34 in bfloat16, of which 32 MiB are made at a time; the last part is
// smaller, and parts begin within an image.
TEST(CudaConvolution, OfManyPatchesIsComputedInParts) {
  for (Arithmetic arithmetic : {Arithmetic::kFloat32, Arithmetic::kBfloat16})
    expect_as_on_the_cpu({7, 51, 50, 106, 3, 3, 2, {{1, 1}, Padding::kSame}}, arithmetic);
}

TEST(CudaConvolution, OfNoImagesHasAGradientOfZerosForTheFilter) {
  expect_as_on_the_cpu({0, 6, 6, 3, 3, 3, 4}, Arithmetic::kFloat32);
}

#ifndef CAIRN_ON_GPU
// The patches of all layers lie in the same memory, one after another.
TEST(CudaConvolution, LayersShareTheMemoryOfTheirPatches) {
  const Tensor x = testing::noise({2, 20, 20, 4}, 1), filter = testing::noise({3, 3, 4, 4}, 2);
  const auto most_used = [&](int layers) {
    testing::SomeGpu on;
    const ConcreteFunction function = testing::trace_function({}, [&](const auto&) {
      Array y(x);
      for (int i = 0; i < layers; ++i)
        y = conv2d(y, Array(filter), Conv2dOptions{{1, 1}, Padding::kSame});
      return std::vector<Array>{y};
    });
    Workspace workspace(*on.gpu);
    LocalStore store;
    run(make_plan(function.graph, {}, {}), workspace, store, {}, {}, {});
    return on.driver.used_bytes();
  };
  const std::size_t patches = 2 * 20 * 20 * 40 * sizeof(float);
  EXPECT_GT(most_used(1), patches);
  EXPECT_LT(most_used(6) - most_used(2), patches);
}
#endif

}  // namespace
}  // namespace cairn
