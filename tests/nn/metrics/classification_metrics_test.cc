#include "nn/metrics/classification_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "nn/metrics/regression_metrics.h"
#include "tests/nn/traced.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

double class_result(Metric&& metric, const Tensor& prediction, const Tensor& label,
                    const Array& weights = {}) {
  metric.add(metric.summary(prediction, label, weights).eval());
  return metric.result();
}

const Tensor& four_scores() {
  static const Tensor scores =
      floats({3, 4}, {0.1f, 0.4f, 0.3f, 0.2f, 0.7f, 0.1f, 0.1f, 0.1f, 0.25f, 0.25f, 0.25f, 0.25f});
  return scores;
}

TEST(BinaryAccuracy, TakesSeveralPredictionsAnExample) {
  Tensor prediction = floats({2, 2}, {0.9f, 0.2f, 0.6f, 0.4f});
  Tensor label = floats({2, 2}, {1, 0, 0, 0});
  EXPECT_NEAR(class_result(BinaryAccuracy(), prediction, label), 0.75, 1e-6);
  EXPECT_NEAR(class_result(BinaryAccuracy(0.65f), prediction, label), 1, 1e-6);
  EXPECT_NEAR(class_result(BinaryAccuracy(), prediction, label, floats({2}, {1, 3})), 0.625, 1e-6);
}

TEST(CategoricalAccuracy, AgreesForOneHotLabelsAndClassIds) {
  Tensor one_hot = floats({3, 4}, {0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0});
  EXPECT_NEAR(class_result(CategoricalAccuracy(), four_scores(), one_hot), 2.0 / 3, 1e-6);
  EXPECT_NEAR(class_result(SparseCategoricalAccuracy(), four_scores(), ids({3, 1}, {1, 1, 0})),
              2.0 / 3, 1e-6);
  EXPECT_THROW(class_result(SparseCategoricalAccuracy(), four_scores(), floats({3}, {1, 1, 0})),
               InvalidArgumentError);
  EXPECT_THROW(class_result(CategoricalAccuracy(), four_scores(), floats({3}, {1, 1, 0})),
               InvalidArgumentError);
}

TEST(TopKCategoricalAccuracy, CountsRightClassesAmongTheBestScores) {
  Tensor label = ids({3}, {2, 0, 3});
  Tensor one_hot = floats({3, 4}, {0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1});
  EXPECT_NEAR(class_result(SparseTopKCategoricalAccuracy(1), four_scores(), label), 2.0 / 3, 1e-6);
  EXPECT_NEAR(class_result(SparseTopKCategoricalAccuracy(2), four_scores(), label), 1, 1e-6);
  EXPECT_NEAR(class_result(TopKCategoricalAccuracy(1), four_scores(), one_hot), 2.0 / 3, 1e-6);
  EXPECT_THROW(TopKCategoricalAccuracy(0), InvalidArgumentError);
}

TEST(TopKCategoricalAccuracy, CountsNansAndUnknownClassesAsWrong) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              least = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(
      class_result(SparseTopKCategoricalAccuracy(1), floats({1, 2}, {nan, nan}), ids({1}, {0})), 0);
  EXPECT_EQ(class_result(SparseTopKCategoricalAccuracy(1), floats({1, 2}, {-1, -2}), ids({1}, {2})),
            0);
  // A score of minus infinity, as of what is left out, does not spoil the others.
  EXPECT_EQ(
      class_result(SparseTopKCategoricalAccuracy(1), floats({1, 2}, {least, 1}), ids({1}, {1})), 1);
}

TEST(Precision, IsTheShareOfPredictedPositivesThatAreRight) {
  Tensor prediction = floats({4, 1}, {0.9f, 0.8f, 0.6f, 0.2f}), label = ids({4}, {1, 0, 1, 1});
  Precision precision({.thresholds = {0.5f, 0.7f, 0.95f}});
  EXPECT_TRUE(std::isnan(precision.result()));
  precision.add(precision.summary(prediction, label).eval());
  EXPECT_THAT(precision.results(),
              ::testing::ElementsAre(::testing::DoubleNear(2.0 / 3, 1e-6), 0.5, 0));
  Recall recall({.thresholds = {0.5f, 0.7f, 0.95f}});
  recall.add(recall.summary(prediction, label).eval());
  EXPECT_THAT(recall.results(), ::testing::ElementsAre(::testing::DoubleNear(2.0 / 3, 1e-6),
                                                       ::testing::DoubleNear(1.0 / 3, 1e-6), 0));
}

TEST(Precision, CountsOneClassOrAllNumbersOfARow) {
  Tensor prediction = floats({2, 2}, {0.9f, 0.8f, 0.7f, 0.2f});
  Tensor label = floats({2, 2}, {1, 0, 0, 1});
  EXPECT_NEAR(class_result(Precision(), prediction, label), 1.0 / 3, 1e-6);
  EXPECT_NEAR(class_result(Precision(), prediction, label, floats({2}, {2, 1})), 2.0 / 5, 1e-6);
  EXPECT_NEAR(class_result(Precision({.class_id = 0}), prediction, label), 0.5, 1e-6);
  EXPECT_NEAR(class_result(Recall({.class_id = 1}), prediction, label), 0, 1e-6);
  EXPECT_THROW(class_result(Recall({.class_id = 1}), floats({1}, {1}), floats({1}, {1})),
               InvalidArgumentError);
}

TEST(Precision, MergesAndRefusesOtherThresholds) {
  Precision whole, part;
  whole.add(whole.summary(floats({2}, {0.9f, 0.1f}), floats({2}, {1, 0})).eval());
  part.add(part.summary(floats({1}, {0.9f}), floats({1}, {0})).eval());
  whole.merge(part);
  EXPECT_EQ(whole.result(), 0.5);
  whole.reset();
  EXPECT_TRUE(std::isnan(whole.result()));
  EXPECT_THROW(whole.merge(Precision({.thresholds = {0.1f, 0.2f}})), InvalidArgumentError);
  EXPECT_THROW(whole.add(floats({2}, {1, 1})), InvalidArgumentError);
  EXPECT_THROW(Precision({.thresholds = {}}), InvalidArgumentError);
  EXPECT_THROW(Recall({.thresholds = {1.5f}}), InvalidArgumentError);
}

TEST(Calibration, ComparesPredictionsWithLabelsInSum) {
  EXPECT_NEAR(class_result(Calibration(), floats({3}, {0.5f, 0.5f, 0.25f}), floats({3}, {0, 1, 0}),
                           floats({3}, {1, 1, 2})),
              1.5, 1e-6);
  EXPECT_TRUE(std::isnan(class_result(Calibration(), floats({1}, {0.5f}), floats({1}, {0}))));
}

TEST(RegressionMetrics, AreMeansOverAllExamples) {
  Tensor prediction = floats({3, 1}, {1, 2, 5}), label = floats({3}, {0, 4, 5});
  EXPECT_NEAR(class_result(MeanSquaredError(), prediction, label), 5.0 / 3, 1e-6);
  EXPECT_NEAR(class_result(MeanAbsoluteError(), prediction, label), 1, 1e-6);
  EXPECT_NEAR(class_result(RootMeanSquaredError(), prediction, label), std::sqrt(5.0 / 3), 1e-6);
  RootMeanSquaredError error("rmse");
  std::unique_ptr<Metric> copy = error.clone();
  copy->add(copy->summary(floats({1}, {3}), floats({1}, {0})).eval());
  EXPECT_EQ(copy->name(), "rmse");
  EXPECT_NEAR(copy->result(), 3, 1e-6);
  EXPECT_TRUE(std::isnan(error.result()));
}

TEST(ClassificationMetrics, AddUpOverBatchesOfAFunctionThatIsTracedOnce) {
  Recall recall;
  SparseTopKCategoricalAccuracy top(2);
  Tensor p = floats({3}, {0.9f, 0.4f, 0.7f}), y = floats({3}, {1, 1, 0});
  recall.add(
      run_traced([&](const Array& a, const Array& b) { return recall.summary(a, b); }, p, y));
  EXPECT_NEAR(recall.result(), 0.5, 1e-6);
  top.add(run_traced([&](const Array& a, const Array& b) { return top.summary(a, b); },
                     four_scores(), ids({3}, {2, 1, 3})));
  EXPECT_NEAR(top.result(), 1, 1e-6);
}

}  // namespace
}  // namespace cairn::nn
