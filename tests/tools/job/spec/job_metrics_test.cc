// The metrics that jobs name, and the threshold by which a model decides.
#include "tools/job/spec/job_metrics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "nn/metrics/best_threshold.h"
#include "tools/job/spec/job.h"
#include "tools/job/toml/job_threshold.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(JobMetrics, BinaryMetricsHaveTheThresholdThatTheirNameSays) {
  Job job = parse_job(
      "[data]\ntrain = 'a'\n[evaluation]\nmetrics = ['pr_auc', 'calibration', "
      "'precision@0.3', 'recall@0.3', 'accuracy@0.3', 'recall']\n",
      "some.toml");
  const Tensor prediction = Tensor::of<float>({4}, std::vector<float>{0.2f, 0.4f, 0.4f, 0.8f}),
               truth = Tensor::of<float>({4}, std::vector<float>{0, 0, 1, 1});
  std::map<std::string, double> results;
  for (const auto& metric : make_metrics(job, MetricOf::kExamples)) {
    metric->add(metric->summary(Array(prediction), Array(truth)).eval());
    results[metric->name()] = metric->result();
  }
  EXPECT_NEAR(results["precision@0.3"], 2.0 / 3, 1e-6);
  EXPECT_EQ(results["recall@0.3"], 1);
  EXPECT_EQ(results["accuracy@0.3"], 0.75);
  EXPECT_EQ(results["recall"], 0.5);
  EXPECT_NEAR(results["calibration"], 0.9, 1e-6);
  EXPECT_GT(results["pr_auc"], 0.7);
  for (const char* name : {"precision@1.5", "recall@", "auc@0.3", "precision@x"})
    EXPECT_FALSE(is_known_metric("binary", name)) << name;
}

TEST(JobMetrics, MetricsOfListsAreKnownWhereThereAreLists) {
  for (const char* name : {"grouped_auc", "ndcg", "ndcg@5", "mrr@3", "hit_rate@10"}) {
    EXPECT_TRUE(is_known_metric("binary", name)) << name;
    EXPECT_EQ(metric_of("binary", name), MetricOf::kLists) << name;
    EXPECT_FALSE(is_known_metric("regression", name)) << name;
    EXPECT_FALSE(is_known_metric("multiclass", name)) << name;
  }
  EXPECT_EQ(metric_of("binary", "recall@0.3"), MetricOf::kExamples);
  for (const char* name : {"recall@10", "ndcg@0", "ndcg@x", "grouped_auc@3", "top_k_accuracy"})
    EXPECT_FALSE(is_known_metric("binary", name)) << name;
  EXPECT_FALSE(is_known_metric("multiclass", "top_k_accuracy@0"));
}

TEST(JobMetrics, NumbersAreJudgedByTheirShareAndTheirLogarithmToo) {
  const Job job = parse_job(
      "[data]\ntrain = 'a'\n[model]\nobjective = 'regression'\n"
      "[evaluation]\nmetrics = ['mape', 'msle']\n",
      "some.toml");
  const Tensor prediction = Tensor::of<float>({2}, std::vector<float>{1, 3}),
               truth = Tensor::of<float>({2}, std::vector<float>{2, 3});
  std::vector<double> results;
  for (const auto& metric : make_metrics(job, MetricOf::kExamples)) {
    metric->add(metric->summary(Array(prediction), Array(truth)).eval());
    results.push_back(metric->result());
    EXPECT_EQ(direction_of(job, metric->name()), nn::Direction::kFalls);
  }
  EXPECT_NEAR(results[0], 25, 1e-4);
  EXPECT_NEAR(results[1], std::pow(std::log(3.0) - std::log(2.0), 2) / 2, 1e-6);
}

TEST(JobThreshold, IsANumberOrARule) {
  const auto read = [](const std::string& threshold, const std::string& rest = "") {
    return parse_job("[data]\ntrain = 'a'\n[validation]\nfiles = 'b'\n[model]\nthreshold = " +
                         threshold + "\n" + rest,
                     "some.toml")
        .model.threshold;
  };
  EXPECT_EQ(read("0.25").fixed, 0.25);
  EXPECT_EQ(read("0").fixed, 0);
  EXPECT_EQ(meaning_of(read("'f1'").rule).goal, nn::ThresholdGoal::kF1);
  const nn::BestThresholdOptions precise = meaning_of(read("'precision >= 0.9'").rule);
  EXPECT_EQ(precise.goal, nn::ThresholdGoal::kRecall);
  EXPECT_EQ(precise.least, 0.9);
  EXPECT_EQ(meaning_of(read("'recall >= 0.5'").rule).goal, nn::ThresholdGoal::kPrecision);
  for (const char* wrong : {"1", "-0.1", "'f2'", "'precision >= 1.5'", "'recall > 0.5'", "true"})
    try {
      read(wrong);
      ADD_FAILURE() << wrong << " was taken";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("some.toml:6"), HasSubstr("model.threshold"),
                                      HasSubstr("balanced_accuracy")))
          << wrong;
    }
  EXPECT_THROW(read("0.5", "objective = 'regression'\n"), InvalidArgumentError);
}

TEST(JobThreshold, OfARuleNeedsValidationData) {
  try {
    parse_job("[data]\ntrain = 'a'\n[model]\nthreshold = 'f1'\n", "some.toml");
    FAIL() << "it was taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("some.toml:4: model.threshold is \"f1\""),
                                    HasSubstr("[validation]")));
  }
}

}  // namespace
}  // namespace cairn::tools
