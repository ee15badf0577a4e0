#include "nn/metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "core/base/json.h"
#include "core/disk/disk.h"
#include "core/graph/ops.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

Tensor vector_of(const Json& values) {
  std::vector<float> numbers = values;
  return Tensor::of<float>(Shape{static_cast<std::int64_t>(numbers.size())}, numbers);
}

// The numbers, and what scikit-learn says of them, are in auc_vectors.json; how it was made stands
// there.
TEST(Auc, AgreesWithTheExactRankStatistic) {
  const Json all = parse_json(system_disk().read("tests/nn/auc_vectors.json"), "auc_vectors.json");
  ASSERT_EQ(all.at("cases").size(), 4u);
  for (const Json& one : all.at("cases")) {
    Auc auc;
    auc.add(auc.summary(vector_of(one.at("probability")), vector_of(one.at("label"))).eval());
    EXPECT_NEAR(auc.result(), one.at("auc").get<double>(), 1e-4) << one.at("id");
  }
}

TEST(Auc, CountsTiesAsOneHalf) {
  Auc auc;
  auc.add(auc.summary(floats({4, 1}, {0.5f, 0.5f, 0.5f, 0.9f}), ids({4}, {0, 1, 0, 1})).eval());
  EXPECT_DOUBLE_EQ(auc.result(), 0.75);
}

TEST(Auc, AddsUpOverBatchesAndProcessesInAnyOrder) {
  Tensor p = floats({6}, {0.1f, 0.4f, 0.35f, 0.8f, 0.7f, 0.2f}),
         y = floats({6}, {0, 0, 1, 1, 0, 1});
  Auc whole, first, second;
  whole.add(whole.summary(p, y).eval());
  first.add(first.summary(p.rows(0, 2), y.rows(0, 2)).eval());
  second.add(second.summary(p.rows(2, 6), y.rows(2, 6)).eval());
  second.merge(first);
  EXPECT_DOUBLE_EQ(second.result(), whole.result());
  EXPECT_DOUBLE_EQ(whole.result(), 5.0 / 9.0);
}

TEST(Auc, WeighsExamples) {
  Auc auc;
  auc.add(
      auc.summary(floats({3}, {0.2f, 0.6f, 0.4f}), floats({3}, {0, 0, 1}), floats({3}, {3, 1, 1}))
          .eval());
  EXPECT_DOUBLE_EQ(auc.result(), 0.75);
}

TEST(Auc, TakesCertainPredictionsToTheOuterBuckets) {
  Auc auc;
  auc.add(auc.summary(floats({2}, {0, 1}), floats({2}, {0, 1})).eval());
  EXPECT_DOUBLE_EQ(auc.result(), 1.0);
}

TEST(Auc, IntegratesThePrecisionRecallCurveBetweenItsPoints) {
  // Up to the first true positive the precision is 1. From there to the second one, t true
  // positives come with 2 (t - 1) false ones, so it is t / (3 t - 2).
  Auc auc({.curve = Curve::kPrecisionRecall});
  EXPECT_TRUE(std::isnan(auc.result()));
  auc.add(auc.summary(floats({4}, {0.9f, 0.5f, 0.5f, 0.5f}), floats({4}, {1, 1, 0, 0})).eval());
  EXPECT_NEAR(auc.result(), (1 + 1.0 / 3 + 2.0 / 9 * std::log(4)) / 2, 1e-6);
}

TEST(Auc, FlattensRowsOfPredictions) {
  Auc auc, flat;
  Tensor p = floats({2, 2}, {0.1f, 0.4f, 0.35f, 0.8f}), y = floats({2, 2}, {0, 0, 1, 1});
  auc.add(auc.summary(p, y, floats({2}, {3, 1})).eval());
  flat.add(flat.summary(floats({4}, {0.1f, 0.4f, 0.35f, 0.8f}), floats({4}, {0, 0, 1, 1}),
                        floats({4}, {3, 3, 1, 1}))
               .eval());
  EXPECT_DOUBLE_EQ(auc.result(), flat.result());
}

TEST(Metric, ClonesAreEmptyAndOfTheSameOptions) {
  Auc auc({.buckets = 16, .curve = Curve::kPrecisionRecall, .name = "coarse"});
  auc.add(auc.summary(floats({2}, {0.1f, 0.9f}), floats({2}, {0, 1})).eval());
  std::unique_ptr<Metric> copy = auc.clone();
  EXPECT_EQ(copy->name(), "coarse");
  EXPECT_TRUE(std::isnan(copy->result()));
  copy->add(copy->summary(floats({2}, {0.1f, 0.9f}), floats({2}, {1, 0})).eval());
  EXPECT_EQ(copy->summary(floats({1}, {0.1f}), floats({1}, {0})).shape(), (Shape{2, 16}));
  std::unique_ptr<Metric> strict = Accuracy(0.95f).clone();
  strict->add(strict->summary(floats({1}, {0.9f}), floats({1}, {1})).eval());
  EXPECT_EQ(strict->result(), 0);
}

TEST(Auc, IsUndefinedUntilItHasSeenBothClasses) {
  Auc auc;
  EXPECT_TRUE(std::isnan(auc.result()));
  auc.add(auc.summary(floats({1}, {0.3f}), floats({1}, {1})).eval());
  EXPECT_TRUE(std::isnan(auc.result()));
}

TEST(Auc, RefusesSummariesOfAnotherKind) {
  Auc auc, coarse({.buckets = 16});
  EXPECT_THROW(auc.add(floats({2}, {1, 1})), InvalidArgumentError);
  EXPECT_THROW(auc.merge(coarse), InvalidArgumentError);
  EXPECT_THROW(Auc({.buckets = 1}), InvalidArgumentError);
}

TEST(Accuracy, IsTheShareOfExamplesOnTheRightSide) {
  Accuracy accuracy;
  EXPECT_TRUE(std::isnan(accuracy.result()));
  accuracy.add(accuracy.summary(floats({3, 1}, {0.9f, 0.2f, 0.6f}), floats({3}, {1, 0, 0})).eval());
  EXPECT_NEAR(accuracy.result(), 2.0 / 3.0, 1e-12);
  accuracy.add(accuracy.summary(floats({1}, {0.1f}), ids({1}, {0})).eval());
  EXPECT_NEAR(accuracy.result(), 0.75, 1e-12);
  accuracy.reset();
  EXPECT_TRUE(std::isnan(accuracy.result()));
}

TEST(LogLoss, IsTheMeanCrossEntropy) {
  LogLoss loss;
  loss.add(loss.summary(floats({2}, {0.8f, 0.4f}), floats({2}, {1, 0})).eval());
  EXPECT_NEAR(loss.result(), -(std::log(0.8) + std::log(0.6)) / 2, 1e-6);
}

TEST(Mean, WeighsValues) {
  Mean mean, other;
  mean.add(mean.summary(floats({2}, {1, 4}), floats({2}, {2, 1})).eval());
  EXPECT_NEAR(mean.result(), 2, 1e-12);
  other.add(other.summary(floats({1}, {6})).eval());
  mean.merge(other);
  EXPECT_NEAR(mean.result(), 3, 1e-12);
  EXPECT_THROW(mean.add(floats({3}, {1, 1, 1})), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
