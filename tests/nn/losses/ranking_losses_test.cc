#include "nn/losses/ranking_losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/function.h"
#include "core/graph/ops.h"
#include "tests/nn/traced.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

float log_of_one_plus_exp(float x) { return std::log1p(std::exp(x)); }
// The cross entropy of the first of some scores.
float cross_entropy_of(const std::vector<float>& scores) {
  double total = 0;
  for (float one : scores) total += std::exp(static_cast<double>(one));
  return static_cast<float>(std::log(total) - static_cast<double>(scores[0]));
}

TEST(Bpr, ComparesAPositiveWithOneOrSeveralNegatives) {
  Tensor positive = floats({2, 1}, {1, 0});
  expect_close(bpr(positive, floats({2}, {0.5f, 2})),
               {log_of_one_plus_exp(-0.5f), log_of_one_plus_exp(2)});
  expect_close(bpr(positive, floats({2, 2}, {0.5f, 1, 2, 0})),
               {(log_of_one_plus_exp(-0.5f) + log_of_one_plus_exp(0)) / 2,
                (log_of_one_plus_exp(2) + log_of_one_plus_exp(0)) / 2});
  EXPECT_THROW(bpr(positive, floats({3}, {1, 2, 3})), InvalidArgumentError);
  EXPECT_THROW(bpr(positive, Array()), InvalidArgumentError);
}

const Tensor& some_scores() {
  static const Tensor scores = floats({3, 3}, {1, 2, 0, 0.5f, 1, 3, 2, 2, 1});
  return scores;
}

TEST(InBatchSoftmax, TakesTheOtherExamplesItemsAsNegatives) {
  expect_close(
      in_batch_softmax(some_scores()),
      {cross_entropy_of({1, 2, 0}), cross_entropy_of({1, 0.5f, 3}), cross_entropy_of({1, 2, 2})});
  expect_close(
      in_batch_softmax(some_scores(), {.temperature = 0.5f}),
      {cross_entropy_of({2, 4, 0}), cross_entropy_of({2, 1, 6}), cross_entropy_of({2, 4, 4})});
}

TEST(InBatchSoftmax, CorrectsTheScoresOfPopularItems) {
  expect_close(
      in_batch_softmax(some_scores(), {.log_probability = floats({3}, {-1, -2, -3})}),
      {cross_entropy_of({2, 4, 3}), cross_entropy_of({3, 1.5f, 6}), cross_entropy_of({4, 3, 4})});
}

TEST(InBatchSoftmax, LeavesOutNegativesThatAreTheRightItem) {
  expect_close(
      in_batch_softmax(some_scores(), {.ids = ids({3, 1}, {7, 8, 7})}),
      {cross_entropy_of({1, 2}), cross_entropy_of({1, 0.5f, 3}), cross_entropy_of({1, 2})});
}

TEST(InBatchSoftmax, PassesNoGradientToWhatIsLeftOut) {
  const Array scores = some_scores();
  Array loss = sum(in_batch_softmax(scores, {.ids = ids({3}, {7, 8, 7})}));
  // The softmax's share of the higher of two scores that differ by 1.
  const float share = 1 / (1 + std::exp(-1.0f));
  std::vector<float> gradient = numbers(grad(loss, {scores})[0]);
  ASSERT_EQ(gradient.size(), 9u);
  EXPECT_NEAR(gradient[0], -share, 1e-6f);  // 1 against 2
  EXPECT_NEAR(gradient[1], share, 1e-6f);
  EXPECT_EQ(gradient[2], 0);
  EXPECT_EQ(gradient[6], 0);
  EXPECT_NEAR(gradient[3] + gradient[4] + gradient[5], 0, 1e-6f);
}

TEST(InBatchSoftmax, FindsTheDiagonalOfABatchOfUnknownSize) {
  Tensor users = floats({3, 2}, {1, 0, 0, 1, 1, 1}), items = floats({3, 2}, {2, 1, 0, 3, 1, -1});
  auto loss = [](const Array& user, const Array& item) {
    return in_batch_softmax(matmul(user, item, false, true));
  };
  expect_close(run_traced(loss, users, items), numbers(loss(users, items)));
}

TEST(InBatchSoftmax, RefusesWhatIsNotSquareOrDoesNotFit) {
  EXPECT_THROW(in_batch_softmax(floats({1, 2}, {1, 2})), InvalidArgumentError);
  EXPECT_THROW(in_batch_softmax(some_scores(), {.temperature = 0}), InvalidArgumentError);
  EXPECT_THROW(in_batch_softmax(some_scores(), {.ids = floats({3}, {1, 2, 3})}),
               InvalidArgumentError);
  EXPECT_THROW(in_batch_softmax(some_scores(), {.log_probability = floats({2}, {0, 0})}),
               InvalidArgumentError);
}

TEST(SampledSoftmax, SubtractsExpectedCountsAndLeavesOutAccidentalHits) {
  Tensor right = floats({2}, {1, 2}), sampled = floats({2, 3}, {0, 1, 2, 3, 2, 1});
  expect_close(sampled_softmax(right, sampled),
               {cross_entropy_of({1, 0, 1, 2}), cross_entropy_of({2, 3, 2, 1})});
  SampledSoftmaxOptions options;
  options.true_log_expected_count = floats({2, 1}, {-1, 0});
  options.sampled_log_expected_count = floats({3}, {-2, 0, 1});
  expect_close(sampled_softmax(right, sampled, options),
               {cross_entropy_of({2, 2, 1, 1}), cross_entropy_of({2, 5, 2, 0})});
  options.true_ids = ids({2}, {4, 5});
  options.sampled_ids = ids({3}, {9, 4, 6});
  expect_close(sampled_softmax(right, sampled, options),
               {cross_entropy_of({2, 2, 1}), cross_entropy_of({2, 5, 2, 0})});
}

TEST(SampledSoftmax, RefusesHalfOfACorrection) {
  Tensor right = floats({1}, {1}), sampled = floats({1, 2}, {0, 1});
  EXPECT_THROW(sampled_softmax(right, sampled, {.true_log_expected_count = floats({1}, {0})}),
               InvalidArgumentError);
  EXPECT_THROW(sampled_softmax(right, sampled, {.sampled_ids = ids({2}, {0, 1})}),
               InvalidArgumentError);
  EXPECT_THROW(sampled_softmax(right, floats({2}, {0, 1})), InvalidArgumentError);
  EXPECT_THROW(sampled_softmax(floats({2}, {1, 1}), sampled), InvalidArgumentError);
}

// ---- lists side by side in a batch ----

// Lists {0, 1, 3} and {2, 4}; the one of 5 is alone.
const std::vector<float> kScores = {2, 1, 0, -1, 0.5f, 7};
const std::vector<float> kRelevance = {1, 0, 0, 2, 1, 1};
const std::vector<std::int64_t> kGroups = {8, 8, 9, 8, 9, 3};

float minus_log_sigmoid(float x) { return std::log1p(std::exp(-x)); }

TEST(GroupedLosses, BprComparesEachExampleWithTheLessRelevantOnesOfItsList) {
  const Tensor losses =
      grouped_bpr(Tensor::of<float>({6}, kScores), Tensor::of<float>({6, 1}, kRelevance),
                  Tensor::of<std::int64_t>({6}, kGroups))
          .eval();
  const std::vector<float> want = {
      minus_log_sigmoid(1),    0, 0, (minus_log_sigmoid(-3) + minus_log_sigmoid(-2)) / 2,
      minus_log_sigmoid(0.5f), 0};
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(losses.values<float>()[i], want[i], 1e-5f) << i;
}

TEST(GroupedLosses, SoftmaxIsOverTheScoresOfTheList) {
  const Tensor losses =
      grouped_softmax(Tensor::of<float>({6}, kScores), Tensor::of<float>({6}, kRelevance),
                      Tensor::of<std::int64_t>({6, 1}, kGroups))
          .eval();
  const float first = std::log(std::exp(2.0f) + std::exp(1.0f) + std::exp(-1.0f));
  const float second = std::log(std::exp(0.0f) + std::exp(0.5f));
  const std::vector<float> want = {first - 2, 0, 0, 2 * (first + 1), second - 0.5f, 0};
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(losses.values<float>()[i], want[i], 1e-5f) << i;
}

TEST(GroupedLosses, ShapesAndTypesThatDoNotFitAreNamed) {
  const Array scores = Tensor::of<float>({6}, kScores);
  const Array groups = Tensor::of<std::int64_t>({6}, kGroups);
  EXPECT_THROW(grouped_bpr(scores, scores, scores), InvalidArgumentError);
  EXPECT_THROW(grouped_softmax(scores, Array(), groups), InvalidArgumentError);
  EXPECT_THROW(grouped_softmax(scores, Tensor::of<float>({2}, std::vector<float>{1, 0}), groups),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
