// [callbacks]: what a job may say there, the files, and the learning rate that falls.
#include "tools/job/spec/job_callbacks.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/tools/temp_folder.h"
#include "tools/job/spec/job.h"
#include "tools/job/train/run_files.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kStart =
    "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\n[data.csv]\ncolumns = ['x:float32', 'y:float32']\n"
    "label = {column = 'y'}\n[features]\nnumeric = 'x'\n";  // 8 lines

Job job(const std::string& text) {
  const TempFolder folder;
  folder.write("a.csv", "1,1\n");
  return parse_job(kStart + text, folder.path() + "/some.toml");
}

std::string error_of(const std::string& text) {
  try {
    job(text);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "it was taken";
}

constexpr const char* kEvaluation = "[evaluation]\nevery = 10\n";

TEST(JobCallbacks, AreReadWithTheirPlaces) {
  const Job read = job("[callbacks]\ncsv_logger = 'log.csv'\ntensorboard = 'logs'\n" +
                       std::string("[callbacks.reduce_lr_on_plateau]\nmonitor = 'logloss'\n"
                                   "factor = 0.5\npatience = 2\ncooldown = 1\nmin_lr = 0.01\n") +
                       kEvaluation);
  EXPECT_EQ(read.callbacks.csv_logger.path, "log.csv");
  EXPECT_THAT(read.callbacks.csv_logger.place, HasSubstr("some.toml:10: callbacks.csv_logger"));
  EXPECT_EQ(read.callbacks.tensorboard.path, "logs");
  EXPECT_TRUE(read.callbacks.plateau.given);
  EXPECT_EQ(read.callbacks.plateau.patience, 2);
  EXPECT_FALSE(job("").callbacks.plateau.given);
}

TEST(JobCallbacks, WhatCannotBeMeantIsNamedWithItsLine) {
  EXPECT_THAT(error_of("[callbacks]\ncsv_loger = 'log.csv'\n"),
              AllOf(HasSubstr("some.toml:10"), HasSubstr("did you mean \"csv_logger\"?")));
  const std::string plateau = "[callbacks.reduce_lr_on_plateau]\n";
  const auto error_with = [&](const std::string& key) {
    return error_of(plateau + key + "\n" + kEvaluation);
  };
  EXPECT_THAT(error_with("patiens = 3"), HasSubstr("did you mean \"patience\"?"));
  EXPECT_THAT(error_with("monitor = 'rmse'"),
              AllOf(HasSubstr("some.toml:10: callbacks.reduce_lr_on_plateau.monitor"),
                    HasSubstr("\"rmse\""), HasSubstr("logloss")));
  EXPECT_THAT(error_with("factor = 1"), HasSubstr("above 0 and below 1"));
  EXPECT_THAT(error_with("patience = 0"), HasSubstr("from 1 to"));
  EXPECT_THAT(error_with("min_delta = -1.0"), HasSubstr("from 0 on"));
  EXPECT_THAT(error_of(plateau), HasSubstr("say with evaluation.every"));
  EXPECT_THAT(error_with("[optimizer.schedule]\nkind = 'cosine'\ndecay_steps = 10"),
              AllOf(HasSubstr("optimizer.schedule"), HasSubstr("remove one of them")));
}

// ---- files ----

class RunFiles : public ::testing::Test {
 protected:
  JobOutput output(const std::string& name) const {
    return {folder_.path() + "/" + name, "some.toml:3: callbacks.csv_logger"};
  }
  std::unique_ptr<RunListener> log(Earlier earlier, Overwrite overwrite = Overwrite::kNo,
                                   std::vector<std::string> metrics = {"auc", "logloss"}) const {
    return csv_listener(output("log.csv"), {"learning_rate"}, metrics, earlier, overwrite);
  }
  template <typename E>
  std::string refusal(const std::function<void()>& make) const {
    try {
      make();
    } catch (const E& error) {
      return error.what();
    }
    return "it was taken";
  }

  TempFolder folder_;
};

constexpr const char* kHeader = "step,seconds,loss,examples_per_s,learning_rate,data,auc,logloss\n";

TEST_F(RunFiles, ALogHasALinePerStepAndEvaluation) {
  const auto listener = log(Earlier::kReplace);
  listener->start(0);
  listener->step({{.step = 10, .seconds = 0.5, .loss = 0.25}, 100, {{"learning_rate", 0.125}}});
  listener->evaluation(10, "test", {{"auc", 0.75}, {"logloss", 0.5}});
  listener->step({{.step = 20, .seconds = 1, .loss = 0.125}, 100, {}});
  EXPECT_EQ(folder_.read("log.csv"), std::string(kHeader) +
                                         "10,0.5,0.25,100,0.125,,,\n10,,,,,test,0.75,0.5\n"
                                         "20,1,0.125,100,,,,\n");
}

TEST_F(RunFiles, AResumedRunGoesOnWithItsLogAndAnotherRunReplacesIt) {
  folder_.write("log.csv", std::string(kHeader) + "10,0.5,0.25,100,0.125,,,\n");
  log(Earlier::kGoOn)->start(10);
  EXPECT_EQ(folder_.read("log.csv"), std::string(kHeader) + "10,0.5,0.25,100,0.125,,,\n");
  // Lines of steps that are trained again are dropped, as is half a line.
  folder_.write("log.csv", std::string(kHeader) +
                               "10,0.5,0.25,100,0.125,,,\n10,,,,,test,0.75,0.5\n" +
                               "20,1,0.125,100,0.125,,,\n20,,,,,te");
  log(Earlier::kGoOn)->start(10);
  EXPECT_EQ(folder_.read("log.csv"),
            std::string(kHeader) + "10,0.5,0.25,100,0.125,,,\n" + "10,,,,,test,0.75,0.5\n");
  const auto another = log(Earlier::kReplace);
  EXPECT_THAT(folder_.read("log.csv"), HasSubstr("10,"));  // a run may still be refused
  another->start(0);
  EXPECT_EQ(folder_.read("log.csv"), kHeader);
}

TEST_F(RunFiles, AnotherFileOrOneThatCannotBeWrittenIsRefusedAtTheStart) {
  folder_.write("log.csv", "my thesis\n");
  EXPECT_THAT(refusal<AlreadyExistsError>([&] { log(Earlier::kGoOn); }),
              AllOf(StartsWith("some.toml:3: callbacks.csv_logger"), HasSubstr("--overwrite")));
  EXPECT_EQ(folder_.read("log.csv"), "my thesis\n");
  log(Earlier::kReplace, Overwrite::kYes)->start(0);
  EXPECT_EQ(folder_.read("log.csv"), kHeader);
  EXPECT_THAT(
      refusal<FailedPreconditionError>([&] { log(Earlier::kGoOn, Overwrite::kNo, {"accuracy"}); }),
      HasSubstr("whose columns are step,seconds"));
  EXPECT_THAT(refusal<Error>([&] {
                csv_listener(output("none/log.csv"), {}, {}, Earlier::kReplace, Overwrite::kNo);
              }),
              AllOf(StartsWith("some.toml:3"), HasSubstr("name a file that can be written")));
  EXPECT_THAT(refusal<Error>([&] { tensorboard_listener(output("log.csv")); }),
              HasSubstr("name a folder that can be written"));
}

TEST_F(RunFiles, EventFilesAreAFolderPerKindOfData) {
  {
    const auto listener = tensorboard_listener(output("logs"));
    listener->start(0);
    listener->step({{.step = 10, .loss = 0.25}, 100, {{"learning_rate", 0.125}}});
    listener->evaluation(10, "validation", {{"auc", 0.75}});
  }
  const auto text_of = [&](const std::string& kind) {
    std::string all;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path() + "/logs/" + kind))
      all += folder_.read("logs/" + kind + "/" + file.path().filename().string());
    return all;
  };
  EXPECT_THAT(text_of("train"),
              AllOf(HasSubstr("loss"), HasSubstr("examples_per_s"), HasSubstr("learning_rate")));
  EXPECT_THAT(text_of("validation"), HasSubstr("auc"));
}

}  // namespace
}  // namespace cairn::tools
