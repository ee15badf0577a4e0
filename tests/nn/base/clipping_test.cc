#include "nn/base/clipping.h"

#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "nn/optimizers/optimizer.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

TEST(ClipByNorm, ScalesLongArraysAndLeavesShortOnes) {
  expect_close(clip_by_norm(floats({2}, {3, 4}), 1), {0.6f, 0.8f});
  expect_close(clip_by_norm(floats({2}, {0.3f, 0.4f}), 1), {0.3f, 0.4f});
  expect_close(clip_by_norm(floats({2}, {0, 0}), 1), {0, 0});
}

TEST(ClipByGlobalNorm, ScalesAllArraysByOneFactor) {
  std::vector<Array> clipped = clip_by_global_norm({floats({1}, {3}), floats({1, 1}, {4})}, 0.5f);
  expect_close(clipped[0], {0.3f});
  expect_close(clipped[1], {0.4f});
  expect_close(global_norm({floats({1}, {3}), floats({1, 1}, {4})}), {5});
}

TEST(ClipByValue, BoundsEachElement) {
  expect_close(clip_by_value(floats({3}, {-2, 0.1f, 2}), -0.5f, 1), {-0.5f, 0.1f, 1});
}

// A gradient of rows (3) and (4) of ids 1 and 0 has norm 5.
Array step_of(const ClippingOptions& clipping) {
  Variable table = make_variable("table", floats({3, 1}, {0, 0, 0}));
  Sgd optimizer({.learning_rate = 1.0f, .clipping = clipping});
  optimizer.minimize(sum(table.gather(ids({2}, {1, 0})) * Array(floats({2, 1}, {3, 4}))));
  return table.read();
}

TEST(Clipping, ActsOnTheRowsOfASparseGradient) {
  expect_close(step_of({}), {-4, -3, 0});
  expect_close(step_of({.clipnorm = 1.0f}), {-0.8f, -0.6f, 0});
  expect_close(step_of({.clipvalue = 3.5f}), {-3.5f, -3, 0});
  expect_close(step_of({.global_clipnorm = 2.5f}), {-2, -1.5f, 0});
}

TEST(Clipping, CountsRowsOfEqualIdsOneByOneAsTheReferenceDoes) {
  Variable table = make_variable("table", floats({2, 1}, {0, 0}));
  Sgd optimizer({.learning_rate = 1.0f, .clipping = {.clipnorm = 1.0f}});
  optimizer.minimize(sum(table.gather(ids({2}, {1, 1})) * Array(floats({2, 1}, {3, 4}))));
  expect_close(table.read(), {0, -1.4f});  // norm 5 of (3, 4), not 7 of their sum
}

TEST(Clipping, TakesTheGlobalNormOverDenseAndSparseGradientsTogether) {
  Variable table = make_variable("table", floats({2, 1}, {0, 0})),
           bias = make_variable("bias", floats({1}, {0}));
  Sgd optimizer({.learning_rate = 1.0f, .clipping = {.global_clipnorm = 1.0f}});
  optimizer.minimize(sum(table.gather(ids({1}, {1})) * Array(3.0f)) +
                     sum(bias.read() * Array(4.0f)));
  expect_close(table.read(), {0, -0.6f});
  expect_close(bias.read(), {-0.8f});
}

}  // namespace
}  // namespace cairn::nn
