// PlanOptions::deterministic on a GPU: every matrix product of a step is planned without being
// timed.
#include <gtest/gtest.h>

#include "core/kernels/cuda/device.h"
#include "tests/core/executor_testing.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using testing::arg;
using testing::floats;
using testing::noise;
using testing::trace_function;

// The driver's counts for a step that has products of all kinds: alone, with a bias and a relu, a
// batch of them, and the pairs of an interaction.
testing::FakeDriver::Counts products_of(PlanOptions options) {
  testing::FakeDriver driver;
  const auto device = cuda::make_device("gpu:0", driver, cpu_device());
  const auto step = trace_function(
      {floats({2, 4}), floats({4, 3}), floats({3}), floats({2, 3, 4})}, [](auto& in) {
        const Array plain = matmul(arg(in, 0), arg(in, 1));
        const Array fused = relu(matmul(arg(in, 0), arg(in, 1) * 2.0f) + arg(in, 2));
        const Array batched = batch_matmul(arg(in, 3), arg(in, 3), false, true);
        const Array pairs = dot_interaction(arg(in, 3));
        return std::vector<Array>{plain, fused, batched, pairs,
                                  dot_interaction_grad(pairs, arg(in, 3))};
      });
  Workspace workspace(*device);
  LocalStore store;
  run(make_plan(step.graph, {}, options), workspace, store, {},
      {noise({2, 4}, 1), noise({4, 3}, 2), noise({3}, 3), noise({2, 3, 4}, 4)}, {});
  return driver.counts();
}

TEST(Deterministic, NoProductOfAStepIsChosenByItsTime) {
  const auto counts = products_of({.deterministic = true});
  EXPECT_GE(counts.products, 4);
  EXPECT_EQ(counts.deterministic_products, counts.products);
}

TEST(Deterministic, UnlessItIsAskedForTheFastestProductIsTaken) {
  const auto counts = products_of({});
  EXPECT_GE(counts.products, 4);
  EXPECT_EQ(counts.deterministic_products, 0);
}

}  // namespace
}  // namespace cairn
