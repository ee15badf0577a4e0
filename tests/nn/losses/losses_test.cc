#include "nn/losses/losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/ops.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

float softplus_of(float x) { return std::log1p(std::exp(x)); }

TEST(SigmoidCrossEntropy, TakesColumnsAndPlainVectorsInAnyMixture) {
  Tensor column = floats({2, 1}, {0.5f, -2}), plain = floats({2}, {0.5f, -2});
  std::vector<float> want = {softplus_of(-0.5f), softplus_of(-2)};
  expect_close(sigmoid_cross_entropy(column, floats({2}, {1, 0})), want);
  expect_close(sigmoid_cross_entropy(plain, floats({2, 1}, {1, 0})), want);
  expect_close(sigmoid_cross_entropy(plain, floats({2}, {1, 0})), want);
  expect_close(sigmoid_cross_entropy(column, ids({2}, {1, 0})), want);
}

TEST(SigmoidCrossEntropy, RefusesShapesThatAreNotOneNumberAnExample) {
  EXPECT_THROW(sigmoid_cross_entropy(floats({2, 2}, {1, 2, 3, 4}), floats({2}, {1, 0})),
               InvalidArgumentError);
  EXPECT_THROW(sigmoid_cross_entropy(floats({3}, {1, 2, 3}), floats({2}, {1, 0})),
               InvalidArgumentError);
  EXPECT_THROW(sigmoid_cross_entropy(floats({2}, {1, 2}), Array()), InvalidArgumentError);
}

TEST(SigmoidCrossEntropy, StaysFiniteForLargeLogits) {
  expect_close(sigmoid_cross_entropy(floats({2}, {200, -200}), floats({2}, {0, 0})), {200, 0});
}

TEST(BinaryCrossEntropy, TakesProbabilitiesUnlessToldThatTheyAreLogits) {
  Tensor label = floats({2}, {1, 0});
  expect_close(binary_cross_entropy(floats({2}, {0.8f, 0.3f}), label),
               {-std::log(0.8f), -std::log(0.7f)}, 1e-5f);
  expect_close(binary_cross_entropy(floats({2}, {0.5f, -2}), label, {.from_logits = true}),
               {softplus_of(-0.5f), softplus_of(-2)});
}

TEST(BinaryCrossEntropy, StaysFiniteWhereAProbabilityIsWrongAndCertain) {
  std::vector<float> loss = numbers(binary_cross_entropy(floats({2}, {0, 1}), floats({2}, {1, 0})));
  EXPECT_NEAR(loss[0], 15.4249f, 1e-3f);
  EXPECT_NEAR(loss[1], 15.4249f, 0.5f);
}

TEST(BinaryCrossEntropy, SmoothsLabelsTowardsOneHalf) {
  float want = -0.9f * std::log(0.8f) - 0.1f * std::log(0.2f);
  expect_close(
      binary_cross_entropy(floats({1}, {0.8f}), floats({1}, {1}), {.label_smoothing = 0.2f}),
      {want}, 1e-5f);
}

TEST(BinaryCrossEntropy, AveragesOverTheLastAxis) {
  Tensor logits = floats({2, 2}, {0.5f, -2, 0, 1}), label = floats({2, 2}, {1, 0, 1, 0});
  float first = (softplus_of(-0.5f) + softplus_of(-2)) / 2,
        second = (softplus_of(0) + softplus_of(1)) / 2;
  expect_close(binary_cross_entropy(logits, label, {.from_logits = true}), {first, second});
  expect_close(binary_cross_entropy(sigmoid(logits), label), {first, second}, 1e-5f);
}

TEST(SoftmaxCrossEntropy, AgreesForOneHotLabelsAndClassIds) {
  Tensor logits = floats({2, 3}, {1, 2, 3, 0, 0, 0});
  float first = std::log(std::exp(1.0f) + std::exp(2.0f) + std::exp(3.0f)) - 2,
        second = std::log(3.0f);
  expect_close(softmax_cross_entropy(logits, floats({2, 3}, {0, 1, 0, 1, 0, 0})), {first, second});
  expect_close(sparse_softmax_cross_entropy(logits, ids({2}, {1, 0})), {first, second});
  expect_close(sparse_softmax_cross_entropy(logits, ids({2, 1}, {1, 0})), {first, second});
  EXPECT_THROW(sparse_softmax_cross_entropy(logits, floats({2}, {1, 0})), InvalidArgumentError);
  EXPECT_THROW(softmax_cross_entropy(logits, floats({2, 2}, {1, 0, 1, 0})), InvalidArgumentError);
}

TEST(CategoricalCrossEntropy, NormalisesProbabilitiesFirst) {
  Tensor prediction = floats({1, 2}, {3, 1});
  expect_close(categorical_cross_entropy(prediction, floats({1, 2}, {0, 1})), {std::log(4.0f)});
  expect_close(sparse_categorical_cross_entropy(prediction, ids({1}, {1})), {std::log(4.0f)});
  expect_close(sparse_categorical_cross_entropy(prediction, ids({1}, {1}), {.from_logits = true}),
               {softplus_of(2)});
}

TEST(MeanSquaredError, AveragesOverTheLastAxis) {
  expect_close(mean_squared_error(floats({2, 2}, {1, 2, 3, 4}), floats({2, 2}, {0, 0, 3, 2})),
               {2.5f, 2});
  expect_close(mean_squared_error(floats({2, 1}, {1, 2}), floats({2}, {0, 4})), {1, 4});
  expect_close(mean_absolute_error(floats({2}, {1, 2}), floats({2}, {0, 4})), {1, 2});
  EXPECT_THROW(mean_squared_error(floats({2, 2}, {1, 2, 3, 4}), floats({2}, {0, 0})),
               InvalidArgumentError);
}

TEST(Huber, IsSquareNearZeroAndLinearBeyondDelta) {
  expect_close(huber(floats({3}, {0.5f, 3, -4}), floats({3}, {0, 0, 0})), {0.125f, 2.5f, 3.5f});
  expect_close(huber(floats({1, 2}, {1, 5}), floats({1, 2}, {0, 0}), 2), {4.25f});
  EXPECT_THROW(huber(floats({1}, {1}), floats({1}, {1}), 0), InvalidArgumentError);
}

TEST(Regularization, SumsWeightsOrTheirSquares) {
  expect_close(l1_regularization(floats({3}, {1, -2, 3}), 0.5f), {3});
  expect_close(l2_regularization(floats({3}, {1, -2, 3}), 0.5f), {7});
}

}  // namespace
}  // namespace cairn::nn
