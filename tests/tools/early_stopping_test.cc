// When a run that stops early has seen enough.
#include "tools/early_stopping.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "tools/job_metrics.h"
#include "tools/job_objective.h"

namespace cairn::tools {
namespace {

Job watching(const std::string& metric, double min_delta = 0) {
  Job job;
  job.early_stopping = {.given = true, .monitor = metric, .patience = 2, .min_delta = min_delta};
  return job;
}

// Each at a step of its own.
bool better(EarlyStopping& stopping, double value) {
  static std::int64_t step = 0;
  return stopping.better(++step, {{"loss", -1}, {stopping.monitor(), value}});
}

TEST(EarlyStopping, EndsAfterAsManyEvaluationsInVainAsThereIsPatience) {
  EarlyStopping stopping(watching("auc"));
  EXPECT_TRUE(better(stopping, 0.6));
  EXPECT_FALSE(better(stopping, 0.6));
  EXPECT_TRUE(better(stopping, 0.7));
  EXPECT_FALSE(better(stopping, 0.65));
  EXPECT_FALSE(stopping.out_of_patience());
  EXPECT_FALSE(better(stopping, 0.69));
  EXPECT_TRUE(stopping.out_of_patience());
  EXPECT_EQ(stopping.best(), 0.7);
}

TEST(EarlyStopping, LooksForSmallNumbersOfWhatIsAnError) {
  EarlyStopping stopping(watching("logloss"));
  EXPECT_TRUE(better(stopping, 0.6));
  EXPECT_FALSE(better(stopping, 0.7));
  EXPECT_TRUE(better(stopping, 0.5));
}

TEST(EarlyStopping, CountsSmallGainsAsNone) {
  Job job = watching("rmse", 1);
  job.model.objective = "regression";
  EarlyStopping stopping(job);
  EXPECT_TRUE(better(stopping, 50));
  EXPECT_FALSE(better(stopping, 49.5));
  EXPECT_TRUE(better(stopping, 48.5));
}

TEST(EarlyStopping, NeverTakesWhatIsNoNumber) {
  EarlyStopping stopping(watching("auc"));
  EXPECT_FALSE(better(stopping, std::nan("")));
  EXPECT_TRUE(better(stopping, 0.1));
  EXPECT_FALSE(better(stopping, std::nan("")));
  EXPECT_EQ(stopping.best(), 0.1);
}

TEST(EarlyStopping, CountsNoNumberAsNothingAndTellsItOnce) {
  EarlyStopping stopping(watching("auc"));
  EXPECT_FALSE(better(stopping, std::nan("")));
  EXPECT_THAT(stopping.complaint(), ::testing::HasSubstr("\"auc\" is not a number"));
  EXPECT_FALSE(better(stopping, std::nan("")));
  EXPECT_EQ(stopping.complaint(), "");
  EXPECT_FALSE(better(stopping, std::nan("")));
  EXPECT_FALSE(stopping.out_of_patience());
  EXPECT_TRUE(better(stopping, 0.5));
}

TEST(EarlyStopping, GoesOnWithWhatAnEarlierRunFound) {
  EarlyStopping earlier(watching("logloss"));
  earlier.better(10, {{"logloss", 0.5}});
  earlier.better(20, {{"logloss", 0.6}});
  EarlyStopping later(watching("logloss"));
  later.restore_state(earlier.state());
  EXPECT_EQ(later.best_step(), 10);
  EXPECT_FALSE(later.better(20, {{"logloss", 0.1}}));  // was judged
  EXPECT_FALSE(later.better(30, {{"logloss", 0.55}}));
  EXPECT_TRUE(later.out_of_patience());
  EarlyStopping of_another_metric(watching("auc"));
  of_another_metric.restore_state(earlier.state());
  EXPECT_TRUE(of_another_metric.better(30, {{"auc", 0.1}}));
}

TEST(EarlyStopping, KnowsWhichWayEachMetricOfAJobGetsBetter) {
  const std::vector<std::string> errors = {"logloss", "rmse", "mae", "mse", "mape", "msle"};
  for (const std::string& objective : objectives())
    for (const std::string& metric : known_metrics(objective)) {
      SCOPED_TRACE(objective + " " + metric);
      Job job = watching(metric);
      job.model.objective = objective;
      if (direction_of(job, metric) == nn::Direction::kUnknown) {
        EXPECT_THROW(EarlyStopping{job}, InvalidArgumentError);
        continue;
      }
      EarlyStopping stopping(job);
      better(stopping, 0.5);
      EXPECT_EQ(better(stopping, 0.6), std::ranges::count(errors, metric) == 0);
    }
}

TEST(EarlyStopping, WatchesTheFirstMetricUnlessToldOtherwise) {
  EXPECT_EQ(EarlyStopping(watching("")).monitor(), "auc");
  Job job = watching("");
  job.model.objective = "regression";
  EXPECT_EQ(EarlyStopping(job).monitor(), "rmse");
  job.evaluation.metrics = {"mae", "rmse"};
  EXPECT_EQ(EarlyStopping(job).monitor(), "mae");
}

TEST(EarlyStopping, JudgesTheModelOfAStepOnce) {
  EarlyStopping stopping(watching("auc"));
  EXPECT_TRUE(stopping.better(10, {{"auc", 0.6}}));
  EXPECT_FALSE(stopping.better(20, {{"auc", 0.5}}));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(stopping.better(20, {{"auc", 0.7}}));
  EXPECT_FALSE(stopping.out_of_patience());
  EXPECT_EQ(stopping.best_step(), 10);
}

TEST(EarlyStopping, NeverEndsARunThatDidNotAskForIt) {
  EarlyStopping stopping{Job{}};
  for (int i = 0; i < 10; ++i) better(stopping, 0.5);
  EXPECT_FALSE(stopping.out_of_patience());
}

}  // namespace
}  // namespace cairn::tools
