#include "tools/job/spec/job_defaults.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "core/graph/ops.h"
#include "tests/tools/job_run.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Job job_with(const std::string& of_data, const std::string& tables = "") {
  return parse_job("[data]\ntrain = 'a.csv'\n" + of_data + tables, "some.toml");
}

float rate_at(const JobOptimizer& optimizer, float step) {
  if (optimizer.rate.schedule() == nullptr) return optimizer.rate.value();
  return (*optimizer.rate.schedule())(Array(step)).eval().item<float>();
}

TEST(JobDefaults, ASmallFileIsReadOftenAndALargeOneOnce) {
  Job small = job_with("batch = 100\n"), large = small, told = job_with("epochs = 0.5\n");
  EXPECT_EQ(settle_defaults(small, 10'000), "20 epochs, shuffled");
  EXPECT_EQ(steps_of(small, 10'000), 2000);
  EXPECT_EQ(small.data.shuffle, 10'000);
  EXPECT_EQ(settle_defaults(large, 1'000'000), "1 epoch, shuffled");
  EXPECT_EQ(steps_of(large, 1'000'000), 10'000);
  EXPECT_EQ(large.data.shuffle, 1 << 19);
  EXPECT_EQ(settle_defaults(told, 10'000), "shuffled");
  EXPECT_EQ(told.data.epochs, 0.5);
}

TEST(JobDefaults, WhatTheJobSaysStays) {
  Job job = job_with("shuffle = 0\nsteps = 7\n", "[optimizer]\nlearning_rate = 0.25\n");
  EXPECT_EQ(settle_defaults(job, 10'000), "");
  EXPECT_EQ(job.data.shuffle, 0);
  EXPECT_EQ(steps_of(job, 10'000), 7);
  EXPECT_EQ(rate_at(job.optimizer, 7), 0.25f);
  EXPECT_EQ(rate_at(job.wide_optimizer, 7), 0.25f);
}

TEST(JobDefaults, RatesThatNothingWasSaidOfFallToATwentieth) {
  Job job = job_with("steps = 1000\n");
  settle_defaults(job, 10'000);
  EXPECT_EQ(job.optimizer.kind, "adagrad");
  EXPECT_FLOAT_EQ(rate_at(job.optimizer, 0), 0.1f);
  EXPECT_FLOAT_EQ(rate_at(job.optimizer, 1000), 0.005f);
  EXPECT_FLOAT_EQ(rate_at(job.wide_optimizer, 0), 0.5f);
  EXPECT_FLOAT_EQ(rate_at(job.wide_optimizer, 2000), 0.025f) << "it goes on with new data";
}

TEST(JobDefaults, ARateThatIsLoweredOnAPlateauDoesNotFallByItself) {
  Job job =
      job_with("test = 'a.csv'\n", "[evaluation]\nevery = 10\n[callbacks.reduce_lr_on_plateau]\n");
  settle_defaults(job, 10'000);
  EXPECT_EQ(job.optimizer.rate.schedule(), nullptr);
}

TEST(JobDefaults, AKindWithoutARateHasARateOfItsOwn) {
  const Job adam = job_with("", "[optimizer]\nkind = 'adam'\n");
  EXPECT_EQ(adam.optimizer.learning_rate, 0.001f);
  const Job ftrl = job_with("", "[wide_optimizer]\nkind = 'ftrl'\n");
  EXPECT_EQ(ftrl.wide_optimizer.learning_rate, 0.5f);
  EXPECT_EQ(ftrl.optimizer.learning_rate, 0.1f);
}

// y is 1000 + 100 x, and the file is in the order of x.
TEST(JobDefaults, AFirstJobOfAFewNumbersComesToTheLine) {
  JobRun run;
  std::string rows = "x,y\n";
  for (int i = 0; i < 500; ++i) rows += str(i / 100.0, ",", 1000 + i, "\n");
  run.folder.write("a.csv", rows);
  for (const char* kind : {"wide", "deep", "wide_deep"}) {
    run.folder.write("job.toml",
                     str("[data]\ntrain = 'a.csv'\ntest = 'a.csv'\n[data.csv]\nheader = true\n"
                         "columns = ['x:float32', 'y:float32']\nlabel = {column = 'y'}\n"
                         "[features]\nnumeric = 'x'\n[model]\nobjective = 'regression'\nkind = '",
                         kind, "'\n"));
    const Json metrics = run.trained("one_device");
    EXPECT_LT(metrics.value("rmse", 1e9), 5) << kind << ": " << run.output();
    EXPECT_THAT(run.output(), HasSubstr("; 1024 epochs, shuffled by default"));
    std::filesystem::remove_all(run.path("run"));
  }
}

// The rate is far too high, so that the model soon is as it should be and then is thrown off.
TEST(JobDefaults, ARunThatEndsWorseThanItsBestEvaluationSaysSo) {
  JobRun run;
  std::string rows = "x,y\n";
  for (int i = 0; i < 200; ++i) rows += str(i % 10, ",", i % 10, "\n");
  run.folder.write("a.csv", rows);
  const std::string job =
      "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nsteps = 12\nbatch = 20\nshuffle = 0\n[data.csv]\n"
      "header = true\ncolumns = ['x:float32', 'y:float32']\nlabel = {column = 'y'}\n[features]\n"
      "numeric = 'x'\n[model]\nobjective = 'regression'\nkind = 'wide'\n"
      "[optimizer]\nkind = 'sgd'\n[optimizer.schedule]\nkind = 'piecewise'\nboundaries = [8]\n"
      "values = [0.1, 3]\n[evaluation]\nevery = 4\n";
  run.folder.write("job.toml", job);
  run.trained("one_device");
  EXPECT_THAT(run.output(), HasSubstr("is worse than that of step 8 ("));
  EXPECT_THAT(run.output(), HasSubstr("restore_best"));
  std::filesystem::remove_all(run.path("run"));
  run.folder.write("job.toml", job + "[early_stopping]\npatience = 9\n");
  run.trained("one_device");
  EXPECT_THAT(run.output(), Not(HasSubstr("is worse than")));
}

}  // namespace
}  // namespace cairn::tools
