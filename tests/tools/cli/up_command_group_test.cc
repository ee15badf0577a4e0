// `cairn up` without ps: one program as every worker of a group, with scripts in its place.
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Sets $i to the index of the worker that the script runs as, which its TF_CONFIG ends with.
constexpr const char* kIndex = "i=${TF_CONFIG##*:}; i=${i%%\\}*}; ";

class UpGroup : public testing::Test {
 protected:
  UpGroup() { ::mkfifo((folder_.path() + "/fifo").c_str(), 0600); }
  ChildProcess up(std::vector<std::string> more) {
    std::vector<std::string> arguments{CAIRN_PROGRAM, "up", "--dir", folder_.path() + "/run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return ChildProcess({.arguments = arguments, .output_file = folder_.path() + "/output"});
  }
  // A group of `workers` workers that run a script.
  ChildProcess group(int workers, const std::string& script) {
    return up({"--workers", std::to_string(workers), "--", "sh", "-c", kIndex + script});
  }
  ExitStatus end_of(ChildProcess& child) { return end_in_time(child, 60'000, output()); }
  std::string output() const { return folder_.read("output"); }
  std::string in(const std::string& name) const { return folder_.path() + "/" + name; }
  // The workers' first words, in any order. Once the test has read them, the workers run.
  // Two may write while the pipe is open once.
  std::vector<std::string> words(std::size_t count) const {
    std::vector<std::string> all;
    while (all.size() < count) {
      std::ifstream pipe(in("fifo"));
      for (std::string word; pipe >> word;) all.push_back(word);
    }
    return all;
  }
  std::ptrdiff_t lines(const std::string& name) const {
    const std::string text = folder_.read(name);
    return std::count(text.begin(), text.end(), '\n');
  }

  TempFolder folder_;
};

TEST_F(UpGroup, EveryWorkerIsToldItsTaskInAClusterOfWorkersAlone) {
  ChildProcess run = group(3, "echo \"$TF_CONFIG\" > " + in("told$i") + "; cat $CAIRN_TOKEN_FILE");
  EXPECT_EQ(end_of(run).code, 0) << output();
  for (int i = 0; i < 3; ++i) {
    const std::string name = "told" + std::to_string(i);
    const Json told = parse_json(folder_.read(name), name);
    EXPECT_EQ(told["task"], Json({{"type", "worker"}, {"index", i}}));
    EXPECT_EQ(told["cluster"].size(), 1u);
    EXPECT_EQ(told["cluster"]["worker"].size(), 3u);
  }
}

TEST_F(UpGroup, WhenAWorkerIsKilledAllAreStartedAgainAndTheStatusIsTheirLast) {
  ChildProcess run = group(3, "echo $i >> " + in("started") +
                                  "; [ $CAIRN_RESTARTS = 1 ] && exit 0"
                                  "; [ $i = 1 ] && kill -9 $$"
                                  "; while [ \"$(wc -l < " +
                                  in("started") + ")\" -lt 3 ]; do :; done; exit 1");
  EXPECT_EQ(end_of(run).code, 0) << output();
  EXPECT_EQ(lines("started"), 6);
  EXPECT_THAT(output(), AllOf(HasSubstr("worker 1 (process "), HasSubstr("killed by SIGKILL"),
                              HasSubstr("all 3 workers are started again")));
}

TEST_F(UpGroup, AWorkerThatEndsByItselfAtOnceWouldDoSoAgain) {
  ChildProcess run = group(1, "echo $i >> " + in("started") + "; exit 7");
  EXPECT_EQ(end_of(run).code, 7) << output();
  EXPECT_EQ(lines("started"), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("exit status 7"), HasSubstr("the group has ended")));
}

TEST_F(UpGroup, AGroupThatCannotStayUpIsGivenUp) {
  ChildProcess run = group(1, "echo $i >> " + in("started") + "; kill -9 $$");
  EXPECT_EQ(end_of(run).code, 137) << output();
  EXPECT_EQ(lines("started"), 3);
  EXPECT_THAT(output(), HasSubstr("started again 2 times"));
}

TEST_F(UpGroup, AnUnplannedDeathCountsAgainstTheLimitThatWasGiven) {
  ChildProcess run = up({"--workers", "1", "--restarts", "0", "--", "sh", "-c", "kill -9 $$"});
  EXPECT_EQ(end_of(run).code, 137) << output();
}

TEST_F(UpGroup, ASignalGoesToAllAndNothingIsStartedAgain) {
  ChildProcess run = group(2, "trap 'echo $i >> " + in("ended") + "; exit 9' TERM; echo $i > " +
                                  in("fifo") + "; while :; do sleep 0.01; done");
  words(2);
  ::kill(run.pid(), SIGTERM);
  EXPECT_EQ(end_of(run).code, 9) << output();
  EXPECT_EQ(lines("ended"), 2);
  EXPECT_THAT(output(), Not(HasSubstr("started again")));
}

TEST_F(UpGroup, SigkillOfTheSupervisorEndsEveryWorker) {
  ChildProcess run = group(2, "echo $$ > " + in("fifo") + "; exec sleep 600");
  std::vector<int> ends;
  for (const std::string& pid : words(2)) ends.push_back(open_pidfd(std::stoi(pid)));
  ::kill(run.pid(), SIGKILL);
  for (const int fd : ends) {
    pollfd wait{.fd = fd, .events = POLLIN};
    EXPECT_EQ(::poll(&wait, 1, 30'000), 1);
    ::close(fd);
  }
}

TEST_F(UpGroup, StatusTellsItsProcessesAndStopEndsIt) {
  ChildProcess run =
      group(2, "trap 'exit 0' TERM; echo $i > " + in("fifo") + "; while :; do sleep 0.01; done");
  words(2);
  const auto answer = [&](const char* command, const std::string& name) {
    ChildProcess asked({.arguments = {CAIRN_PROGRAM, command, in("run")}, .output_file = in(name)});
    EXPECT_EQ(end_of(asked).code, 0) << folder_.read(name);
    return folder_.read(name);
  };
  EXPECT_THAT(answer("status", "status"),
              AllOf(HasSubstr("a group of 2 workers"), HasSubstr("/job:worker/task:1"),
                    HasSubstr("logs/worker-1.log")));
  EXPECT_THAT(answer("stop", "stop"), HasSubstr("has ended"));
  EXPECT_EQ(end_of(run).code, 0);
}

TEST_F(UpGroup, WhatDoesNotFitAGroupIsNamed) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--workers", "2"}, "give it behind --"},
      {{"--workers", "2", "--lanes", "2", "--", "true"}, "--lanes is of a cluster with ps"},
      {{"--workers", "0", "--", "true"}, "--workers is 0"},
      {{"--ps", "0", "--kill", "worker:0@40%", "--", "true"}, "worker:0@12s"},
      {{"--workers", "2", "--", "/no/such/program"}, "cannot start /no/such/program"}};
  for (const auto& [arguments, said] : cases) {
    ChildProcess run = up(arguments);
    EXPECT_EQ(end_of(run).code, 1) << said;
    EXPECT_THAT(output(), HasSubstr(said));
  }
}

}  // namespace
}  // namespace cairn::tools
