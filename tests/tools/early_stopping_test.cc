// When a run that stops early has seen enough.
#include "tools/early_stopping.h"

#include <gmock/gmock.h>

#include <cmath>

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
  EarlyStopping stopping(watching("rmse", 1));
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
