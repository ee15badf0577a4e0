// [callbacks] in whole runs, under every kind of strategy.
#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>

#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/child_process.h"

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

TEST_P(CallbacksInARun, AResumedRunKeepsItsRateAndItsLog) {
  ASSERT_EQ(train("100"), 0) << folder_.read("output");
  const std::string before = folder_.read("log.csv");
  ASSERT_EQ(train("110", {"--resume", path("checkpoints")}), 0) << folder_.read("output");
  const std::string after = folder_.read("log.csv");
  ASSERT_GT(after.size(), before.size());
  EXPECT_EQ(after.substr(0, before.size()), before);
  EXPECT_THAT(after.substr(before.size()), HasSubstr(",0.1,0.1,"));
}

INSTANTIATE_TEST_SUITE_P(Under, CallbacksInARun,
                         ::testing::Values("parameter_server", "hybrid", "mirrored",
                                           "central_storage", "one_device",
                                           "multi_worker_mirrored"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace cairn::tools
