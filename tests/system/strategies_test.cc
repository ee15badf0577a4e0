// The example that trains one model under every strategy, with real processes: the same losses, and
// a group of workers that loses one and goes on when it is started again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <cmath>
#include <deque>
#include <map>
#include <sstream>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"
#include "tools/launch/reserved_port.h"

namespace cairn::tools {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr int kTrainingMs = 200'000;
constexpr int kSteps = 1500;

class Strategies : public testing::Test {
 protected:
  ChildProcess start(const std::vector<std::string>& arguments, const std::string& output,
                     std::vector<std::string> environment = {}) {
    std::vector<std::string> all{std::string(CAIRN_PROGRAMS) + "/strategies"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return ChildProcess({.arguments = all,
                         .environment = std::move(environment),
                         .output_file = folder_.path() + "/" + output});
  }
  int end_of(ChildProcess& child) { return end_in_time(child, kTrainingMs, "").shell_code(); }
  // By step, as printed; a step that a run took twice printed the same loss twice.
  std::map<int, std::string> losses(const std::string& output) const {
    std::map<int, std::string> all;
    std::istringstream lines(folder_.read(output));
    for (std::string line; std::getline(lines, line);) {
      int step = 0;
      char loss[64];
      if (std::sscanf(line.c_str(), "step %d: loss %63s", &step, loss) != 2) continue;
      EXPECT_EQ(all.try_emplace(step, loss).first->second, loss) << "step " << step;
    }
    return all;
  }
  std::map<int, std::string> alone(const std::string& strategy) {
    ChildProcess child = start({"--strategy=" + strategy}, strategy);
    EXPECT_EQ(end_of(child), 0) << folder_.read(strategy);
    return losses(strategy);
  }
  std::map<int, std::string> on_servers() {
    const std::string programs = CAIRN_PROGRAMS;
    ChildProcess child({.arguments = {programs + "/cairn", "up", "--ps", "2", "--workers", "1",
                                      "--lanes", "1", "--dir", folder_.path() + "/cluster", "--",
                                      programs + "/strategies", "--strategy=parameter_server"},
                        .environment = {},
                        .output_file = folder_.path() + "/servers"});
    EXPECT_EQ(end_of(child), 0) << folder_.read("servers");
    return losses("servers");
  }
  void expect_close(const std::map<int, std::string>& got,
                    const std::map<int, std::string>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (const auto& [step, loss] : wanted)
      EXPECT_NEAR(std::stof(got.at(step)), std::stof(loss), 1e-5f * std::stof(loss))
          << "step " << step;
  }

  TempFolder folder_;
};

class Workers : public Strategies {
 protected:
  std::vector<ChildProcess> start_workers(int workers, const std::string& run, int steps) {
    while (static_cast<int>(ports_.size()) < workers) ports_.emplace_back();
    Json addresses = Json::array();
    for (int i = 0; i < workers; ++i)
      addresses.push_back(ports_[static_cast<std::size_t>(i)].address());
    std::vector<ChildProcess> all;
    for (int i = 0; i < workers; ++i) {
      const Json config = {{"cluster", {{"worker", addresses}}},
                           {"task", {{"type", "worker"}, {"index", i}}}};
      all.push_back(start({"--strategy=multi_worker_mirrored", "--steps=" + std::to_string(steps),
                           "--checkpoints=" + folder_.path() + "/" + run + "-saved"},
                          run + std::to_string(i), {"TF_CONFIG=" + json_text(config)}));
    }
    return all;
  }
  std::vector<int> ends_of(std::vector<ChildProcess>& workers) {
    std::vector<int> codes;
    for (ChildProcess& each : workers) codes.push_back(end_of(each));
    return codes;
  }
  // The checkpoint of the line before it is there then: every worker waits for it.
  void await_step(ChildProcess& worker, const std::string& output, int step) {
    for (int i = 0; i < kTrainingMs / 5 && losses(output).count(step) == 0; ++i) {
      pollfd ended{.fd = worker.pidfd(), .events = POLLIN};
      if (::poll(&ended, 1, 5) == 1) FAIL() << "it ended: " << folder_.read(output);
    }
  }

  std::deque<ReservedPort> ports_;
};

TEST_F(Workers, EveryStrategyTrainsTheModelToTheSameLosses) {
  const auto wanted = alone("one_device");
  EXPECT_LT(std::stof(wanted.at(200)), std::stof(wanted.at(100)));
  expect_close(alone("mirrored"), wanted);
  EXPECT_EQ(alone("mesh"), alone("mirrored"));
  expect_close(alone("central_storage"), wanted);
  expect_close(on_servers(), wanted);
  auto workers = start_workers(2, "workers", 200);
  EXPECT_THAT(ends_of(workers), Each(0)) << folder_.read("workers0");
  EXPECT_EQ(losses("workers0"), losses("workers1"));
  expect_close(losses("workers0"), wanted);
}

TEST_F(Workers, AStrategyThatThereIsNotIsNamed) {
  ChildProcess child = start({"--strategy=mirrord"}, "output");
  EXPECT_EQ(end_of(child), 1);
  EXPECT_THAT(folder_.read("output"), HasSubstr("\"mirrord\""));
}

struct KilledWorker : Workers, ::testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(KilledWorker, EndsTheOthersWhoGoOnWhenAllAreStartedAgain) {
  const auto [count, killed] = GetParam();
  auto undisturbed = start_workers(count, "whole", kSteps);
  ASSERT_THAT(ends_of(undisturbed), Each(0)) << folder_.read("whole0");

  auto workers = start_workers(count, "run", kSteps);
  auto& victim = workers[static_cast<std::size_t>(killed)];
  await_step(victim, "run" + std::to_string(killed), 300);
  victim.send(SIGKILL);
  const auto codes = ends_of(workers);
  for (int i = 0; i < count; ++i) {
    if (i == killed) continue;
    EXPECT_EQ(codes[static_cast<std::size_t>(i)], 1);
    EXPECT_THAT(folder_.read("run" + std::to_string(i)),
                AllOf(HasSubstr("/job:worker/task:" + std::to_string(killed)),
                      HasSubstr("start the program again")));
  }
  auto again = start_workers(count, "run", kSteps);
  ASSERT_THAT(ends_of(again), Each(0)) << folder_.read("run0");
  for (int i = 0; i < count; ++i) {
    const std::string run = "run" + std::to_string(i);
    EXPECT_EQ(losses(run), losses("whole" + std::to_string(i)));
    const std::string text = folder_.read(run);
    EXPECT_EQ(text.find("step 100:"), text.rfind("step 100:")) << "it began anew: " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, KilledWorker,
                         ::testing::Values(std::pair{2, 0}, std::pair{2, 1}, std::pair{3, 1}),
                         [](const auto& of) {
                           return std::to_string(of.param.second) + "Of" +
                                  std::to_string(of.param.first);
                         });

}  // namespace
}  // namespace cairn::tools
