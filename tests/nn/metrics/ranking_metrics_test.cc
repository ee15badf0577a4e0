#include "nn/metrics/ranking_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "core/graph/ops.h"
#include "tests/nn/traced.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

double list_result(Metric&& metric, const Tensor& scores, const Tensor& label,
                   const Array& weights = {}) {
  metric.add(metric.summary(scores, label, weights).eval());
  return metric.result();
}

double discount(double rank) { return 1 / std::log2(1 + rank); }

TEST(GroupedAuc, IsTheMeanOfEachListsAuc) {
  Tensor scores = floats({3, 3}, {3, 2, 1, 1, 1, 2, 1, 2, 3}),
         label = floats({3, 3}, {1, 0, 1, 1, 0, 0, 1, 1, 1});
  EXPECT_NEAR(list_result(GroupedAuc(), scores, label), (0.5 + 0.25) / 2, 1e-6);
  EXPECT_NEAR(list_result(GroupedAuc(), scores, label, floats({3}, {3, 1, 5})), (1.5 + 0.25) / 4,
              1e-6);
  EXPECT_TRUE(
      std::isnan(list_result(GroupedAuc(), floats({1, 2}, {1, 2}), floats({1, 2}, {0, 0}))));
  EXPECT_THROW(list_result(GroupedAuc(), scores, ids({3}, {0, 1, 2})), InvalidArgumentError);
}

TEST(Ndcg, ComparesTheOrderWithTheBestOne) {
  Tensor scores = floats({1, 4}, {1, 4, 3, 2}), label = floats({1, 4}, {2, 0, 1, 0});
  EXPECT_NEAR(list_result(Ndcg(), scores, label),
              (3 * discount(4) + discount(2)) / (3 * discount(1) + discount(2)), 1e-6);
  EXPECT_NEAR(list_result(Ndcg({.k = 2}), scores, label),
              discount(2) / (3 * discount(1) + discount(2)), 1e-6);
  EXPECT_NEAR(list_result(Ndcg({.k = 1, .gain = Gain::kLinear}), scores, label), 0, 1e-6);
  EXPECT_EQ(Ndcg({.k = 10}).name(), "ndcg@10");
  EXPECT_THROW(Ndcg({.k = -1}), InvalidArgumentError);
}

TEST(ListMetrics, LeaveOutListsWithoutARelevantItem) {
  Tensor scores = floats({2, 2}, {2, 1, 2, 1}), label = floats({2, 2}, {0, 0, 0, 1});
  EXPECT_NEAR(list_result(Ndcg(), scores, label), discount(2), 1e-6);
  EXPECT_NEAR(list_result(RecallAtK({.k = 1}), scores, label), 0, 1e-6);
  EXPECT_NEAR(list_result(Mrr(), scores, label), 0.5, 1e-6);
  EXPECT_NEAR(list_result(Mrr(), scores, ids({2}, {-1, 1})), 0.5, 1e-6);
}

TEST(ListMetrics, TakeNoItemWhereTheLabelIsBelowZero) {
  Tensor scores = floats({1, 4}, {9, 2, 8, 1}), label = floats({1, 4}, {-1, 0, -1, 1});
  EXPECT_NEAR(list_result(Ndcg(), scores, label), discount(2), 1e-6);
  EXPECT_NEAR(list_result(RecallAtK({.k = 2}), scores, label), 1, 1e-6);
  EXPECT_NEAR(list_result(HitRate({.k = 2}), scores, label), 1, 1e-6);
  EXPECT_NEAR(list_result(Mrr(), scores, label), 0.5, 1e-6);
  EXPECT_NEAR(list_result(GroupedAuc(), scores, label), 0, 1e-6);
}

TEST(ListMetrics, GiveTheLeastToAModelThatScoresAllItemsAlike) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Tensor& scores :
       {floats({1, 4}, {1, 1, 1, 1}), floats({1, 4}, {nan, nan, nan, nan})}) {
    Tensor label = floats({1, 4}, {1, 1, 0, 0}), place = ids({1}, {0});
    EXPECT_EQ(list_result(RecallAtK({.k = 2}), scores, label), 0);
    EXPECT_EQ(list_result(HitRate({.k = 2}), scores, label), 0);
    EXPECT_NEAR(list_result(Mrr(), scores, label), 1.0 / 3, 1e-6);
    EXPECT_EQ(list_result(Ndcg({.k = 2}), scores, label), 0);
    EXPECT_EQ(list_result(HitRate({.k = 3}), scores, place), 0);
    EXPECT_NEAR(list_result(Mrr(), scores, place), 0.25, 1e-6);
    EXPECT_NEAR(list_result(GroupedAuc(), scores, label), 0.5, 1e-6);
  }
}

TEST(ListMetrics, AgreeForARelevanceAndForThePlaceOfTheRelevantItem) {
  Tensor scores = floats({3, 4}, {4, 3, 2, 1, 1, 2, 3, 4, 2, 2, 3, 1});
  Tensor place = ids({3, 1}, {1, 0, 0});
  Tensor label = floats({3, 4}, {0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0});
  for (std::int64_t k = 0; k <= 4; ++k) {
    EXPECT_NEAR(list_result(Ndcg({.k = k}), scores, place),
                list_result(Ndcg({.k = k}), scores, label), 1e-6);
    EXPECT_NEAR(list_result(RecallAtK({.k = k}), scores, place),
                list_result(RecallAtK({.k = k}), scores, label), 1e-6);
    EXPECT_NEAR(list_result(HitRate({.k = k}), scores, place),
                list_result(RecallAtK({.k = k}), scores, label), 1e-6);
    EXPECT_NEAR(list_result(Mrr({.k = k}), scores, place),
                list_result(Mrr({.k = k}), scores, label), 1e-6);
  }
  EXPECT_NEAR(list_result(RecallAtK({.k = 2}), scores, place), 1.0 / 3, 1e-6);
  EXPECT_NEAR(list_result(Mrr(), scores, place), (0.5 + 0.25 + 1.0 / 3) / 3, 1e-6);
}

TEST(RecallAtK, IsTheShareOfRelevantItemsAmongTheFirst) {
  Tensor scores = floats({1, 5}, {5, 4, 3, 2, 1}), label = floats({1, 5}, {1, 0, 2, 1, 0});
  EXPECT_NEAR(list_result(RecallAtK({.k = 3}), scores, label), 2.0 / 3, 1e-6);
  EXPECT_NEAR(list_result(HitRate({.k = 1}), scores, label), 1, 1e-6);
  EXPECT_NEAR(list_result(RecallAtK({.k = 9}), scores, label), 1, 1e-6);
}

TEST(ListMetric, IsMadeFromAFunctionOfOnesOwn) {
  ListMetric longest("first_score", [](const std::string&, const Array& scores, const Array&) {
    Array first = squeeze(slice(scores, 1, 0, 1), 1);
    return ListMetric::Values{first, cast(greater(first, 1.0f), DType::kFloat32)};
  });
  std::unique_ptr<Metric> copy = longest.clone();
  Tensor scores = floats({3, 2}, {1, 0, 2, 0, 4, 0});
  EXPECT_NEAR(list_result(std::move(*copy), scores, scores), 3, 1e-6);
  EXPECT_TRUE(std::isnan(longest.result()));
  EXPECT_THROW(ListMetric("none", nullptr), InvalidArgumentError);
}

TEST(ListMetrics, AddUpOverBatchesAndAreRecordedForBatchesOfUnknownSize) {
  Ndcg whole({.k = 2}), parts({.k = 2});
  Tensor scores = floats({3, 3}, {3, 2, 1, 1, 3, 2, 2, 2, 1}),
         label = floats({3, 3}, {0, 1, 0, 2, 1, 0, 1, 0, 0});
  whole.add(whole.summary(scores, label).eval());
  auto summary = [&](const Array& s, const Array& y) { return parts.summary(s, y); };
  parts.add(run_traced(summary, scores.rows(0, 1), label.rows(0, 1)));
  parts.add(run_traced(summary, scores.rows(1, 3), label.rows(1, 3)));
  EXPECT_NEAR(parts.result(), whole.result(), 1e-6);
  EXPECT_THROW(parts.summary(floats({3}, {1, 2, 3}), label), InvalidArgumentError);
  EXPECT_THROW(parts.summary(scores, floats({3, 2}, {1, 0, 1, 0, 1, 0})), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
