// Matrix products on a CUDA device: which are asked of its driver, and that copies of their factors
// change nothing.
#include <gtest/gtest.h>

#include "tests/core/executor_testing.h"
#include "tests/core/kernels/cuda/some_gpu.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using testing::noise;

Tensor value_on(Device& device, Arithmetic arithmetic, const std::function<Array()>& made) {
  const ConcreteFunction function =
      testing::trace_function({}, [&](const auto&) { return std::vector<Array>{made()}; });
  Workspace workspace(device);
  LocalStore store;
  return run(make_plan(function.graph, {}, {.products = arithmetic}), workspace, store, {}, {},
             {})[0];
}

// How far the device's value is from the CPU's, at most.
double difference(Device& device, Arithmetic arithmetic, const std::function<Array()>& made) {
  const Tensor want = value_on(cpu_device(), arithmetic, made),
               got = value_on(device, arithmetic, made);
  EXPECT_EQ(got.type(), want.type());
  double most = 0;
  for (std::size_t i = 0; i < want.values<float>().size(); ++i)
    most = std::max(most, std::abs(double{got.values<float>()[i]} - want.values<float>()[i]));
  return most;
}

// Sizes along which a matrix lies in memory become multiples of eight; others stay.
TEST(CudaProducts, LargeOnesInBfloat16AreComputedOnAlignedRows) {
  const Tensor bias = noise({411}, 3);
  for (bool transpose_a : {false, true})
    for (bool transpose_b : {false, true}) {
      const testing::SomeGpu on;
      const Tensor a = noise(transpose_a ? Shape{411, 413} : Shape{413, 411}, 1),
                   b = noise(transpose_b ? Shape{411, 411} : Shape{411, 411}, 2);
      const auto product = [&] { return matmul(Array(a), Array(b), transpose_a, transpose_b); };
      EXPECT_LT(difference(*on.gpu, Arithmetic::kBfloat16, product), 1e-4);
      EXPECT_LT(difference(*on.gpu, Arithmetic::kBfloat16,
                           [&] { return relu(product() + Array(bias)) * 2.0f; }),
                1e-4);
      for (const Gemm& g : on.driver.gemms()) {
        EXPECT_EQ(g.m, transpose_a ? 416 : 413);
        EXPECT_EQ(g.n, 416);
        EXPECT_EQ(g.k, transpose_a && !transpose_b ? 411 : 416);
      }
      if (on.kCounted) {
        EXPECT_GE(on.driver.gemms().size(), 2u);
      }
    }
}

TEST(CudaProducts, SmallOnesAndThoseInFloat32AreComputedAsTheyAre) {
  const testing::SomeGpu on;
  const Tensor a = noise({13, 11}, 1), b = noise({11, 9}, 2);
  for (Arithmetic arithmetic : {Arithmetic::kFloat32, Arithmetic::kTf32, Arithmetic::kBfloat16})
    EXPECT_LT(difference(*on.gpu, arithmetic, [&] { return matmul(Array(a), Array(b)); }),
              arithmetic == Arithmetic::kTf32 ? 5e-3 : 1e-4);
  for (const Gemm& g : on.driver.gemms()) EXPECT_EQ(g.n, 9);
}

// The second product reads the first one's result, the third the second one's: neither is float32
// in memory, and the last, which leaves the step, is.
TEST(CudaProducts, AChainOfThemIsRoundedNowhereUnderMixedBfloat16) {
  const testing::SomeGpu on;
  const Tensor a = noise({6, 8}, 1), b = noise({8, 8}, 2);
  const auto chain = [&] {
    Array x = matmul(Array(a), Array(b));
    x = tanh(matmul(x, Array(b)));
    return matmul(x, Array(b)) + 1.0f;
  };
  // Results are rounded between the layers, once on each device.
  EXPECT_LT(difference(*on.gpu, Arithmetic::kMixedBfloat16, chain), 0.02);
  if (on.kCounted) {
    EXPECT_EQ(on.driver.counts().narrowed, 2);  // a and b
  }
}

// The difference of two nearly equal numbers is rounded, and not the numbers before.
TEST(CudaProducts, OneThatSomethingIsTakenFromIsNotRoundedBeforeUnderMixedBfloat16) {
  const testing::SomeGpu on;
  const Tensor a = noise({6, 8}, 1), b = noise({8, 8}, 2);
  const Tensor near = value_on(cpu_device(), Arithmetic::kBfloat16, [&] {
    return matmul(Array(a), Array(b)) + Array(noise({6, 8}, 3)) * 1e-3f;
  });
  const auto rest = [&] { return matmul(matmul(Array(a), Array(b)) - Array(near), Array(b)); };
  EXPECT_LT(difference(*on.gpu, Arithmetic::kMixedBfloat16, rest), 1e-5);
  if (on.kCounted) {
    EXPECT_EQ(on.driver.counts().narrowed, 2);  // a and b
  }
}

// A number that is stretched to a matrix is read as the number, and no matrix is written.
TEST(CudaProducts, WhatIsStretchedForOneReaderIsNotWritten) {
  const testing::SomeGpu on;
  const Tensor a = noise({6, 8}, 1), row = noise({8}, 2), column = noise({6, 1}, 3);
  for (const Tensor& one : {noise({}, 4), row, column}) {
    const auto pieces = [&](const std::function<Array()>& made) {
      const int before = on.driver.counts().pieces;
      EXPECT_LT(difference(*on.gpu, Arithmetic::kFloat32, made), 1e-6);
      return on.driver.counts().pieces - before;
    };
    EXPECT_EQ(pieces([&] { return broadcast_like(Array(one), Array(a)) * Array(a); }),
              pieces([&] { return Array(one) * Array(a); }));
  }
}

// A value that something else reads too stays float32.
TEST(CudaProducts, WhatOtherKindsOfOperationsReadStaysFloat32UnderMixedBfloat16) {
  const testing::SomeGpu on;
  const Tensor a = noise({6, 8}, 1), b = noise({8, 8}, 2);
  const auto read_twice = [&] {
    const Array x = matmul(Array(a), Array(b));
    return mean(matmul(x, Array(b))) + reduce_max(x);
  };
  EXPECT_LT(difference(*on.gpu, Arithmetic::kMixedBfloat16, read_twice), 1e-5);
  if (on.kCounted) {
    EXPECT_EQ(on.driver.counts().narrowed, 3);  // a, b and x
  }
}

}  // namespace
}  // namespace cairn
