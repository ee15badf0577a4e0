// [callbacks] in whole runs, under every kind of strategy.
#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/job_run.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> all;
  std::string cell;
  for (std::istringstream in(line); std::getline(in, cell, ',');) all.push_back(cell);
  return all;
}

class CallbacksInARun : public ::testing::TestWithParam<const char*> {
 protected:
  // The label is a coin: nothing is learnt, and no evaluation is better by much.
  CallbacksInARun() {
    std::string rows;
    for (int i = 0; i < 400; ++i) rows += std::to_string(i % 10) + (i % 3 == 0 ? ",1\n" : ",0\n");
    folder_.write("a.csv", rows);
    folder_.write("job.toml",
                  "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nbatch = 40\n[data.csv]\n"
                  "columns = ['x:float32', 'y:float32']\nlabel = {column = 'y'}\n"
                  "[features]\nnumeric = 'x'\nbucketised = {x = [3, 6]}\n[model]\nhidden = []\n"
                  "[optimizer]\nkind = 'sgd'\nlearning_rate = 0.5\n[wide_optimizer]\n"
                  "learning_rate = 0.25\n[evaluation]\nevery = 10\n"
                  "[callbacks]\ncsv_logger = '" +
                      path("log.csv") + "'\ntensorboard = '" + path("logs") +
                      "'\n[callbacks.reduce_lr_on_plateau]\npatience = 2\n"
                      "factor = 0.5\nmin_delta = 0.9\nmin_lr = 0.1\n");
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  int train(const std::string& steps, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{
        CAIRN_PROGRAM, "train",         path("job.toml"),   "--dir",
        path("run"),   "--strategy",    GetParam(),         "--steps",
        steps,         "--checkpoints", path("checkpoints")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ChildProcess child({.arguments = arguments, .output_file = path("output")});
    return end_in_time(child, 120'000, folder_.read("output")).code;
  }
  std::vector<std::vector<std::string>> log() const {
    std::vector<std::vector<std::string>> lines;
    std::string line;
    for (std::istringstream in(folder_.read("log.csv")); std::getline(in, line);)
      lines.push_back(cells(line));
    return lines;
  }

  TempFolder folder_;
};

struct JobRunOfOneClass : ::testing::Test, JobRun {
  int train() {
    return cairn({"train", path("job.toml"), "--strategy", "one_device", "--dir", path("run"),
                  "--overwrite"});
  }
};

TEST_P(CallbacksInARun, ARateFallsOnAPlateauAndTheFilesTellOfIt) {
  ASSERT_EQ(train("100"), 0) << folder_.read("output");
  EXPECT_THAT(folder_.read("output"),
              HasSubstr("learning_rate 0.25, wide_learning_rate 0.125 from now on"));
  const auto lines = log();
  ASSERT_GT(lines.size(), 10u);
  EXPECT_EQ(lines[0][5], "wide_learning_rate");
  std::vector<std::string> last;
  for (const auto& line : lines)
    if (line.size() > 5 && !line[5].empty()) last = line;  // of a step
  ASSERT_GE(last.size(), 6u);
  EXPECT_EQ(last[0], "100");
  EXPECT_EQ(last[4], "0.1");
  EXPECT_EQ(last[5], "0.1");
  for (const char* kind : {"train", "test"})
    EXPECT_FALSE(std::filesystem::is_empty(path("logs/") + kind));
}

TEST_F(JobRunOfOneClass, IsRefusedAtTheStartWhereAnAucIsWatched) {
  folder.write("a.csv", "0.5,1\n0.25,0\n0.75,1\n0.5,0\n");
  folder.write("b.csv", "0.5,0\n0.25,0\n0.75,0\n");
  for (const std::string key : {"early_stopping", "callbacks.reduce_lr_on_plateau"}) {
    folder.write("job.toml",
                 "[data]\ntrain = 'a.csv'\ntest = 'b.csv'\nbatch = 2\nsteps = 4\n[data.csv]\n"
                 "columns = ['x:float32', 'y:float32']\nlabel = {column = 'y'}\n"
                 "[features]\nnumeric = 'x'\n[model]\nkind = 'deep'\n[evaluation]\nevery = 1\n[" +
                     key + "]\n");
    EXPECT_EQ(train(), 1);
    EXPECT_THAT(output(),
                HasSubstr(key + " watches auc, which can never be a number: in the test "
                                "data, of data.test, the labels of these 3 examples are all 0"));
    folder.write("job.toml", folder.read("job.toml") + "monitor = 'logloss'\n");
    EXPECT_EQ(train(), 0) << output();
  }
}

TEST_P(CallbacksInARun, AResumedRunKeepsItsRateAndItsLog) {
  ASSERT_EQ(train("100"), 0) << folder_.read("output");
  const std::string before = folder_.read("log.csv");
  ASSERT_EQ(train("110", {"--resume", path("checkpoints")}), 0) << folder_.read("output");
  const std::string after = folder_.read("log.csv");
  ASSERT_GT(after.size(), before.size());
  EXPECT_EQ(after.substr(0, before.size()), before);
  EXPECT_THAT(after.substr(before.size()), HasSubstr(",0.1,0.1,"));
}

// The label is a coin, so evaluations after the first find nothing better: the rates fall at step
// 30, and the run ends at step 50. The run that is resumed takes its steps 21 to 50.
TEST_P(CallbacksInARun, AResumedRunDecidesAsItWouldHaveWithoutThePause) {
  folder_.write("job.toml",
                folder_.read("job.toml") + "[early_stopping]\npatience = 4\nmin_delta = 0.9\n");
  ASSERT_EQ(train("20"), 0) << folder_.read("output");
  ASSERT_EQ(train("100", {"--resume", path("checkpoints"), "--report", path("report")}), 0)
      << folder_.read("output");
  const std::string told = folder_.read("output");
  EXPECT_THAT(told, HasSubstr("early stopping: 4 evaluations in a row found auc no better"));
  EXPECT_THAT(told, HasSubstr("went back to the best model, of step 10"));
  const Json report = parse_json(folder_.read("report"), "the report");
  EXPECT_EQ(report["steps"], 50);
  EXPECT_EQ(report["best"]["step"], 10);
  for (const auto& line : log())
    if (line.size() > 5 && line[0] == "50" && !line[4].empty()) {
      EXPECT_EQ(line[4], "0.125");
      EXPECT_EQ(line[5], "0.1");
    }
  // A run that had stopped early stays stopped.
  ASSERT_EQ(train("100", {"--resume", path("checkpoints")}), 0) << folder_.read("output");
  EXPECT_THAT(folder_.read("output"), HasSubstr("before the run was resumed"));
}

INSTANTIATE_TEST_SUITE_P(Under, CallbacksInARun,
                         ::testing::Values("parameter_server", "hybrid", "mirrored",
                                           "central_storage", "one_device",
                                           "multi_worker_mirrored"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace cairn::tools
