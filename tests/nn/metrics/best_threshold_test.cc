#include "nn/metrics/best_threshold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "core/tensor/tensor.h"

namespace cairn::nn {
namespace {

struct Examples {
  std::vector<float> predictions, labels, weights;

  std::int64_t size() const { return static_cast<std::int64_t>(predictions.size()); }
};

double found(const BestThresholdOptions& options, const Examples& examples) {
  BestThreshold metric(options);
  const auto some = [&](const std::vector<float>& values, std::int64_t begin, std::int64_t end) {
    return Array(Tensor::of<float>(
        {end - begin}, std::vector<float>(values.begin() + begin, values.begin() + end)));
  };
  const std::int64_t middle = examples.size() / 2;  // summaries add up
  for (const auto& [begin, end] :
       {std::pair(std::int64_t{0}, middle), std::pair(middle, examples.size())})
    metric.add(metric
                   .summary(some(examples.predictions, begin, end),
                            some(examples.labels, begin, end), some(examples.weights, begin, end))
                   .eval());
  return metric.result();
}

// The value of the goal at a threshold; below 0 if it is not as good as required.
double value_above(double threshold, const BestThresholdOptions& options,
                   const Examples& examples) {
  double tp = 0, fp = 0, fn = 0, tn = 0;
  for (std::size_t i = 0; i < examples.predictions.size(); ++i) {
    const bool yes = examples.predictions[i] > threshold, positive = examples.labels[i] > 0.5f;
    (yes ? positive ? tp : fp : positive ? fn : tn) += examples.weights[i];
  }
  const double precision = tp + fp > 0 ? tp / (tp + fp) : -1, recall = tp / (tp + fn);
  switch (options.goal) {
    case ThresholdGoal::kF1: return 2 * tp / (2 * tp + fp + fn);
    case ThresholdGoal::kAccuracy: return (tp + tn) / (tp + tn + fp + fn);
    case ThresholdGoal::kBalancedAccuracy: return (recall + tn / (tn + fp)) / 2;
    case ThresholdGoal::kRecall: return precision >= options.least ? recall : -1;
    case ThresholdGoal::kPrecision: return recall >= options.least ? precision : -1;
  }
  return -1;
}

// Thousandths, so that no two predictions share a bucket.
Examples random_examples(std::mt19937& random, std::size_t n) {
  Examples made;
  std::vector<int> thousandths(999);
  std::iota(thousandths.begin(), thousandths.end(), 1);
  std::shuffle(thousandths.begin(), thousandths.end(), random);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (std::size_t i = 0; i < n; ++i) {
    made.predictions.push_back(static_cast<float>(thousandths[i]) / 1000);
    made.labels.push_back(uniform(random) < made.predictions.back() ? 1.0f : 0.0f);
    made.weights.push_back(static_cast<float>(1 + random() % 3));
  }
  made.labels.front() = 1;
  made.labels.back() = 0;
  return made;
}

const BestThresholdOptions kGoals[] = {{.goal = ThresholdGoal::kF1},
                                       {.goal = ThresholdGoal::kAccuracy},
                                       {.goal = ThresholdGoal::kBalancedAccuracy},
                                       {.goal = ThresholdGoal::kRecall, .least = 0.7},
                                       {.goal = ThresholdGoal::kPrecision, .least = 0.6}};

TEST(BestThreshold, IsAsGoodAsTheBestOfAllThatThereAre) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const Examples examples = random_examples(random, 60);
    for (const BestThresholdOptions& options : kGoals) {
      SCOPED_TRACE(::testing::Message()
                   << "seed " << seed << ", goal " << static_cast<int>(options.goal));
      double best = value_above(0, options, examples);
      for (const float each : examples.predictions)
        best = std::max(best, value_above(each, options, examples));
      const double threshold = found(options, examples);
      if (best < 0) {
        EXPECT_TRUE(std::isnan(threshold));
        continue;
      }
      EXPECT_NEAR(value_above(threshold, options, examples), best, 1e-9) << threshold;
    }
  }
}

TEST(BestThreshold, LiesInTheMiddleOfWhatIsFree) {
  const Examples examples{{0.1f, 0.2f, 0.8f, 0.9f}, {0, 0, 1, 1}, {1, 1, 1, 1}};
  EXPECT_NEAR(found({}, examples), 0.5, 1e-3);
}

TEST(BestThreshold, IsNoneWhereNoneIsGoodEnough) {
  const Examples worst_first{{0.9f, 0.8f, 0.1f}, {0, 0, 1}, {1, 1, 1}};
  EXPECT_TRUE(std::isnan(found({.goal = ThresholdGoal::kRecall, .least = 0.5}, worst_first)));
  const Examples of_one_class{{0.9f, 0.8f}, {1, 1}, {1, 1}};
  EXPECT_TRUE(std::isnan(found({}, of_one_class)));
  EXPECT_TRUE(std::isnan(BestThreshold().result()));
}

TEST(BestThreshold, MayCallAllExamplesPositive) {
  const Examples examples{{1e-9f, 0.5f, 0.7f}, {1, 0, 1}, {5, 1, 1}};
  const double threshold = found({.goal = ThresholdGoal::kAccuracy}, examples);
  EXPECT_GE(threshold, 0);
  EXPECT_LT(threshold, 1e-9);
}

}  // namespace
}  // namespace cairn::nn
