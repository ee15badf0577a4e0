// The losses of nn/losses/losses.h beyond cross entropies and squares.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/graph/ops.h"
#include "nn/losses/losses.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

TEST(Hinge, CountsZeroAsTheNegativeClass) {
  Tensor scores = floats({4}, {0.5f, 2, 0.5f, -3});
  expect_close(hinge(scores, floats({4}, {1, 1, -1, -1})), {0.5f, 0, 1.5f, 0});
  expect_close(hinge(scores, ids({4, 1}, {1, 1, 0, 0})), {0.5f, 0, 1.5f, 0});
  expect_close(squared_hinge(scores, floats({4}, {1, 1, 0, 0})), {0.25f, 0, 2.25f, 0});
  expect_close(hinge(floats({1, 2}, {0.5f, 0.5f}), floats({1, 2}, {1, 0})), {1});
  EXPECT_THROW(hinge(scores, floats({3}, {1, 1, 0})), InvalidArgumentError);
}

TEST(CategoricalHinge, ComparesTheRightClassWithTheBestWrongOne) {
  expect_close(categorical_hinge(floats({3, 3}, {1, 3, 2.5f, 4, 1, 2, -2, -1, -3}),
                                 floats({3, 3}, {0, 1, 0, 0, 0, 1, 1, 0, 0})),
               {0.5f, 3, 3});
  EXPECT_THROW(categorical_hinge(floats({2}, {1, 2}), floats({2}, {1, 0})), InvalidArgumentError);
}

TEST(Poisson, IsTheNegativeLogLikelihoodButForAConstant) {
  expect_close(poisson(floats({2}, {2, 0.5f}), floats({2}, {3, 0})),
               {2 - 3 * std::log(2.0f), 0.5f});
  EXPECT_TRUE(std::isfinite(numbers(poisson(floats({1}, {0}), floats({1}, {1})))[0]));
}

TEST(KlDivergence, SumsOverTheLastAxis) {
  expect_close(kl_divergence(floats({1, 2}, {0.25f, 0.75f}), floats({1, 2}, {0.5f, 0.5f})),
               {0.5f * std::log(2.0f) + 0.5f * std::log(2.0f / 3)});
  expect_close(kl_divergence(floats({1, 2}, {0, 1}), floats({1, 2}, {0, 1})), {0});
}

TEST(LogCosh, StaysFiniteForLargeErrors) {
  expect_close(log_cosh(floats({3}, {0.5f, 300, -300}), floats({3}, {0, 0, 0})),
               {std::log(std::cosh(0.5f)), 300 - std::log(2.0f), 300 - std::log(2.0f)});
}

TEST(CosineSimilarity, IsMinusOneForEqualDirections) {
  expect_close(
      cosine_similarity(floats({3, 2}, {3, 4, 1, 0, 0, 0}), floats({3, 2}, {6, 8, 0, 2, 1, 1})),
      {-1, 0, 0});
}

TEST(MeanAbsolutePercentageError, IsRelativeToTheLabel) {
  expect_close(mean_absolute_percentage_error(floats({2}, {3, -1}), floats({2}, {2, -4})),
               {50, 75});
}

TEST(MeanSquaredLogarithmicError, ComparesLogarithmsOfOnePlusTheNumbers) {
  float error = std::log(4.0f) - std::log(2.0f);
  expect_close(mean_squared_logarithmic_error(floats({2}, {3, -5}), floats({2}, {1, 0})),
               {error * error, 0});
}

TEST(FocalCrossEntropy, CountsWellClassifiedExamplesLess) {
  Tensor p = floats({2}, {0.8f, 0.4f}), y = floats({2}, {1, 0});
  std::vector<float> want = {-0.04f * std::log(0.8f), -0.16f * std::log(0.6f)};
  expect_close(binary_focal_cross_entropy(p, y), want, 1e-5f);
  Tensor logits = floats({2}, {std::log(4.0f), std::log(2.0f / 3)});
  expect_close(binary_focal_cross_entropy(logits, y, {.from_logits = true}), want, 1e-5f);
  expect_close(binary_focal_cross_entropy(p, y, {.gamma = 0, .alpha = 0.25f}),
               {-0.25f * std::log(0.8f), -0.75f * std::log(0.6f)}, 1e-5f);
  EXPECT_THROW(binary_focal_cross_entropy(p, y, {.gamma = -1}), InvalidArgumentError);

  Tensor rows = floats({1, 2}, {0.8f, 0.2f}), right = floats({1, 2}, {0, 1});
  expect_close(categorical_focal_cross_entropy(rows, right), {-0.25f * 0.64f * std::log(0.2f)},
               1e-5f);
  expect_close(categorical_focal_cross_entropy(log(Array(rows)), right,
                                               {.from_logits = true, .alpha = 1.0f}),
               {-0.64f * std::log(0.2f)}, 1e-5f);
}

TEST(CategoricalCrossEntropy, SmoothsLabelsTowardsAllClasses) {
  Tensor logits = floats({1, 4}, {1, 2, 3, 4}), label = floats({1, 4}, {0, 0, 0, 1});
  Tensor smooth = floats({1, 4}, {0.05f, 0.05f, 0.05f, 0.85f});
  Array want = softmax_cross_entropy(logits, smooth);
  expect_close(
      categorical_cross_entropy(logits, label, {.from_logits = true, .label_smoothing = 0.2f}),
      numbers(want));
  expect_close(categorical_cross_entropy(softmax(logits), label, {.label_smoothing = 0.2f}),
               numbers(want), 1e-5f);
  EXPECT_THROW(sparse_categorical_cross_entropy(logits, ids({1}, {3}), {.label_smoothing = 0.2f}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
