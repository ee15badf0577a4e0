// The metric that a job watches while it trains, and the memory of a run that stops early.
#include "tools/job/parts/watched_metrics.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/base/error.h"
#include "tools/job/spec/job_metrics.h"
#include "tools/job/spec/job_objective.h"

namespace cairn::tools {
namespace {

using Verdict = Monitor::Verdict;

Job watching(const std::string& metric, double min_delta = 0) {
  Job job;
  job.early_stopping = {.given = true, .monitor = metric, .patience = 2, .min_delta = min_delta};
  return job;
}

TEST(StoppingMonitor, IsOutOfPatienceAfterAsManyEvaluationsInVainAsTheJobSays) {
  Monitor auc = *stopping_monitor(watching("auc"));
  EXPECT_EQ(auc.take(0.6), Verdict::kBetter);
  EXPECT_EQ(auc.take(0.6), Verdict::kNoBetter);
  EXPECT_EQ(auc.take(0.7), Verdict::kBetter);
  EXPECT_EQ(auc.take(0.65), Verdict::kNoBetter);
  EXPECT_FALSE(auc.out_of_patience());
  EXPECT_EQ(auc.take(0.69), Verdict::kNoBetter);
  EXPECT_TRUE(auc.out_of_patience());
  EXPECT_EQ(auc.best(), 0.7);
}

TEST(StoppingMonitor, CountsSmallGainsAsNone) {
  Job job = watching("rmse", 1);
  job.model.objective = "regression";
  Monitor rmse = *stopping_monitor(job);
  EXPECT_EQ(rmse.take(50), Verdict::kBetter);
  EXPECT_EQ(rmse.take(49.5), Verdict::kNoBetter);
  EXPECT_EQ(rmse.take(48.5), Verdict::kBetter);
}

TEST(StoppingMonitor, GoesOnWithWhatAnEarlierRunFound) {
  Monitor earlier = *stopping_monitor(watching("logloss"));
  earlier.take(0.5, 10);
  earlier.take(0.6, 20);
  Monitor later = *stopping_monitor(watching("logloss"));
  restore_memory(later, memory_json(earlier));
  EXPECT_EQ(later.best_at(), 10);
  EXPECT_EQ(later.take(0.1, 20), Verdict::kSeen);
  EXPECT_EQ(later.take(0.55, 30), Verdict::kNoBetter);
  EXPECT_TRUE(later.out_of_patience());
  Monitor of_another_metric = *stopping_monitor(watching("auc"));
  restore_memory(of_another_metric, memory_json(earlier));
  EXPECT_EQ(of_another_metric.take(0.1, 20), Verdict::kBetter);
}

// As every release has written it into checkpoints.
TEST(StoppingMonitor, ReadsTheMemoryOfAnEarlierRelease) {
  Monitor auc = *stopping_monitor(watching("auc"));
  restore_memory(auc, parse_json(R"({"monitor": "auc", "best": 0.75, "best_step": 40,
                                     "judged_step": 60, "in_vain": 1})",
                                 "a memory"));
  EXPECT_EQ(auc.best(), 0.75);
  EXPECT_EQ(auc.best_at(), 40);
  EXPECT_EQ(auc.take(0.7, 60), Verdict::kSeen);
  EXPECT_EQ(auc.take(0.7, 80), Verdict::kNoBetter);
  EXPECT_TRUE(auc.out_of_patience());
}

TEST(StoppingMonitor, KnowsWhichWayEachMetricOfAJobGetsBetter) {
  const std::vector<std::string> errors = {"logloss", "rmse", "mae", "mse", "mape", "msle"};
  for (const std::string& objective : objectives())
    for (const std::string& metric : known_metrics(objective)) {
      SCOPED_TRACE(objective + " " + metric);
      Job job = watching(metric);
      job.model.objective = objective;
      if (direction_of(job, metric) == nn::Direction::kUnknown) {
        EXPECT_THROW(stopping_monitor(job), InvalidArgumentError);
        continue;
      }
      Monitor monitor = *stopping_monitor(job);
      monitor.take(0.5);
      EXPECT_EQ(monitor.take(0.6) == Verdict::kBetter, std::ranges::count(errors, metric) == 0);
    }
}

TEST(StoppingMonitor, WatchesTheFirstMetricUnlessTheJobNamesOne) {
  EXPECT_EQ(stopping_monitor(watching(""))->name(), "auc");
  Job job = watching("");
  job.model.objective = "regression";
  EXPECT_EQ(stopping_monitor(job)->name(), "rmse");
  job.evaluation.metrics = {"mae", "rmse"};
  EXPECT_EQ(stopping_monitor(job)->name(), "mae");
}

TEST(StoppingMonitor, IsNotThereForAJobThatDoesNotStopEarly) {
  EXPECT_FALSE(stopping_monitor(Job{}).has_value());
}

}  // namespace
}  // namespace cairn::tools
