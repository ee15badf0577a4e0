// `cairn status` of a run that is under way.
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;

class StatusOfARun : public ::testing::TestWithParam<const char*> {
 protected:
  StatusOfARun() {
    std::string rows;
    for (int i = 0; i < 400; ++i) rows += std::to_string(i % 10) + (i % 10 < 5 ? ",1\n" : ",0\n");
    folder_.write("a.csv", rows);
    folder_.write("job.toml",
                  "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nbatch = 40\nepochs = 1000000\n"
                  "[data.csv]\ncolumns = ['x:float32', 'y:float32']\nlabel = {column = 'y'}\n"
                  "[features]\nnumeric = 'x'\n[model]\nkind = 'deep'\nhidden = []\n"
                  "[evaluation]\nevery = 200\nmetrics = 'logloss'\n");
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  // The output of `cairn status`; empty: it has failed, as before the run has a folder.
  std::string status(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{CAIRN_PROGRAM, "status", path("run")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ChildProcess child({.arguments = arguments, .output_file = path("status")});
    const bool good = end_in_time(child, 60'000, folder_.read("status")).code == 0;
    const std::string said = folder_.read("status");
    folder_.write("status", "");
    return good ? said : "";
  }

  TempFolder folder_;
};

TEST_P(StatusOfARun, TellsTheNewestLossAndTheMetricsOfTheNewestEvaluation) {
  ChildProcess run({.arguments = {CAIRN_PROGRAM, "train", path("job.toml"), "--dir", path("run"),
                                  "--strategy", GetParam()},
                    .output_file = path("output")});
  pollfd ended{.fd = run.pidfd(), .events = POLLIN};
  std::string said;
  const auto tells = [&said](const char* what) { return said.find(what) != std::string::npos; };
  while (!(tells("training: step ") && tells("evaluation: step ")) && ::poll(&ended, 1, 100) == 0)
    said = status();
  const std::string json = status({"--json"});
  run.send(SIGINT);
  EXPECT_EQ(end_in_time(run, 120'000, folder_.read("output")).code, 130) << folder_.read("output");

  EXPECT_THAT(status(), HasSubstr("has ended"));
  const Json after = parse_json(status({"--json"}), "the status of a run that has ended");
  EXPECT_EQ(after["running"], false);
  EXPECT_GT(after["program"]["training"]["step"], 0);

  EXPECT_THAT(said, HasSubstr("training: step "));
  EXPECT_THAT(said, HasSubstr(" test data:  logloss 0."));
  const Json program = parse_json(json, "the status")["program"];
  EXPECT_GT(program["training"]["step"], 0);
  EXPECT_LT(program["training"]["loss"], 1.0);
  EXPECT_EQ(program["evaluation"]["step"].get<int>() % 200, 0);
  EXPECT_LT(program["evaluation"]["metrics"]["logloss"], 1.0);
}

INSTANTIATE_TEST_SUITE_P(WithACoordinatorAndWithout, StatusOfARun,
                         ::testing::Values("parameter_server", "one_device"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace cairn::tools
