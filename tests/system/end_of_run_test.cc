// How runs end: in order, at once, with an error; and what is left of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <filesystem>
#include <functional>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"
#include "tools/launch/reserved_port.h"

namespace cairn::tools {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kEndMs = 200'000, kLookMs = 100;

class EndOfRun : public testing::Test {
 protected:
  EndOfRun() {
    std::string rows;
    for (int i = 0; i < 512; ++i)
      rows += std::to_string(i % 7) + "," + std::to_string(i % 2) + "\n";
    folder_.write("data.csv", rows);
    write_job("data.csv", "data.csv");
  }
  void write_job(const std::string& train, const std::string& test,
                 const std::string& more = "") const {
    folder_.write(
        "job.toml",
        "[data]\ntrain = '" + train + "'\ntest = '" + test +
            "'\nbatch = 32\n[data.csv]\ncolumns = ['x:float32', 'y:float32']\nlabel = {column = "
            "'y'}\n"
            "[features]\nnumeric = 'x'\nbucketised = {x = [1, 3, 5]}\n[model]\nkind = 'wide'\n" +
            more);
  }
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string program(const std::string& name) const {
    return std::string(CAIRN_PROGRAMS) + "/" + name;
  }
  std::string output() const { return folder_.read("output"); }
  ChildProcess start(std::vector<std::string> arguments, std::vector<std::string> environment = {},
                     const std::string& output = "output") const {
    return ChildProcess({.arguments = std::move(arguments),
                         .environment = std::move(environment),
                         .output_file = file(output)});
  }
  ChildProcess start_training(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{program("cairn"), "train", file("job.toml"), "--dir",
                                       file("run")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(arguments);
  }
  ExitStatus end_of(ChildProcess& child) const { return end_in_time(child, kEndMs, output()); }
  int train(const std::vector<std::string>& more) const {
    ChildProcess child = start_training(more);
    return end_of(child).shell_code();
  }
  int verify_checkpoints() const {
    ChildProcess child =
        start({program("cairn"), "ckpt", "verify", file("run/checkpoints")}, {}, "verified");
    return end_of(child).shell_code();
  }
  // Looks until `seen`, or until the child ends.
  void wait_for(const ChildProcess& child, const std::function<bool()>& seen) const {
    pollfd wait{.fd = child.pidfd(), .events = POLLIN};
    for (int i = 0; i < kEndMs / kLookMs && !seen() && ::poll(&wait, 1, kLookMs) == 0; ++i) {
    }
  }
  void wait_for_steps(const ChildProcess& child) const {
    wait_for(child, [this] { return output().find("examples/s") != std::string::npos; });
  }
  std::vector<pid_t> servers(const std::string& role) const {
    std::vector<pid_t> pids;
    const Json description = parse_json(folder_.read("run/cluster.json"), "run/cluster.json");
    for (const auto& task : description.at("tasks"))
      if (task["role"] == role) pids.push_back(task["pid"]);
    return pids;
  }

  TempFolder folder_;
};

TEST_F(EndOfRun, FlagsAreCheckedAsTheJobFileIs) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--steps", "-5"}, "--steps is -5"},
      {{"--epochs", "inf"}, "--epochs is inf"},
      {{"--epochs", "nan"}, "--epochs is nan"},
      {{"--model", "dlmr"}, "did you mean \"dlrm\"?"},
      {{"--ps", "0"}, "--ps is 0"},
      {{"--transport", "tpc"}, "--transport is \"tpc\""},
      {{"--ps-wait", "-1"}, "--ps-wait is -1"}};
  for (const auto& [flags, said] : cases) {
    EXPECT_EQ(train(flags), 1);
    EXPECT_THAT(output(), HasSubstr(said));
  }
}

TEST_F(EndOfRun, ALabelOfNoClassIsNamedWithItsLineBeforeAnythingRuns) {
  folder_.write("bad.csv", "1,0\n2,11\n3,1\n");
  for (const auto& [train_file, test_file] :
       {std::pair("bad.csv", "data.csv"), std::pair("data.csv", "bad.csv")}) {
    write_job(train_file, test_file);
    EXPECT_EQ(train({}), 1);
    EXPECT_THAT(output(), AllOf(HasSubstr("bad.csv:2:3"), HasSubstr("\"y\""), HasSubstr("11")));
  }
  EXPECT_THAT(output(), Not(HasSubstr("cluster:")));
}

TEST_F(EndOfRun, WhatTheEndNeedsIsTriedAtTheStart) {
  EXPECT_EQ(train({"--report", file("no/such/folder/report.json")}), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("the report could not be written"), HasSubstr("--report"),
                              Not(HasSubstr("step "))));
  folder_.write("a file", "");
  EXPECT_EQ(train({"--checkpoints", file("a file")}), 1);
  EXPECT_THAT(output(), HasSubstr("the checkpoints could not be written"));
}

// Before the run only the first batch of the records is read, so the bad one is met at the end.
TEST_F(EndOfRun, TheModelIsSavedBeforeItIsJudged) {
  struct Example {
    float label;
    std::int32_t id;
  };
  std::string good, bad;
  for (int i = 0; i < 64; ++i) {
    Example example{static_cast<float>(i % 2), i % 8};
    good.append(reinterpret_cast<const char*>(&example), sizeof example);
    example.label = i < 60 ? example.label : 5;
    bad.append(reinterpret_cast<const char*>(&example), sizeof example);
  }
  folder_.write("train.bin", good);
  folder_.write("test.bin", bad);
  folder_.write("job.toml",
                "[data]\nformat = 'records'\ntrain = 'train.bin'\ntest = 'test.bin'\nbatch = "
                "8\nepochs = 1\n[data.records]\n"
                "fields = ['label:float32', 'id:int32']\nlabel = 'label'\n[features.ids]\nid = "
                "8\n[model]\nkind = 'deep'\n"
                "[checkpoint]\nevery = 'never'\n[evaluation]\nbatch = 8\n");

  EXPECT_EQ(train({"--report", file("report.json")}), 1);

  EXPECT_THAT(output(), AllOf(HasSubstr("the evaluation at the end failed"),
                              HasSubstr("test.bin: record 60"), HasSubstr("done after 8 steps"),
                              HasSubstr("checkpoint " + file("run/checkpoints"))));
  EXPECT_EQ(verify_checkpoints(), 0) << folder_.read("verified");
  const Json report = parse_json(folder_.read("report.json"), "report.json");
  EXPECT_FALSE(report["completed"].get<bool>());
  EXPECT_THAT(report["error"].get<std::string>(), HasSubstr("test.bin"));
}

TEST_F(EndOfRun, ADivergingModelStopsTheRunAndNamesTheCheckpoint) {
  write_job("data.csv", "data.csv",
            "[optimizer]\nkind = 'sgd'\nlearning_rate = 3e38\n[checkpoint]\nevery = 1\n");
  EXPECT_EQ(train({"--epochs", "50"}), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("not finite"), HasSubstr("lower the learning rate"),
                              HasSubstr("checkpoint")));
  EXPECT_THAT(output(), Not(HasSubstr("done after")));
}

TEST_F(EndOfRun, CheckpointsAreMadeOnTheWayWithoutBeingAskedFor) {
  ASSERT_EQ(train({"--steps", "2000", "--report", file("report.json")}), 0) << output();
  EXPECT_GE(parse_json(folder_.read("report.json"), "report.json")["checkpoints_saved"].get<int>(),
            3);
}

TEST_F(EndOfRun, EachSignalSavesAndHasItsStatus) {
  for (const int number : {SIGTERM, SIGHUP}) {
    std::filesystem::remove_all(file("run"));
    folder_.write("output", "");
    ChildProcess child = start_training({"--epochs", "1e6"});
    wait_for_steps(child);
    ::kill(child.pid(), number);
    EXPECT_EQ(end_of(child).shell_code(), 128 + number) << output();
    EXPECT_EQ(verify_checkpoints(), 0) << folder_.read("verified");
    EXPECT_THAT(output(), HasSubstr("interrupted after"));
  }
}

TEST_F(EndOfRun, TheOutcomeIsToldBeforeAReportThatCannotBeWrittenAnyMore) {
  std::filesystem::create_directory(file("reports"));
  ChildProcess child = start_training({"--epochs", "1e6", "--report", file("reports/report.json")});
  wait_for_steps(child);
  std::filesystem::remove(file("reports"));
  ::kill(child.pid(), SIGINT);
  EXPECT_EQ(end_of(child).shell_code(), 1) << output();
  EXPECT_THAT(output(),
              AllOf(HasSubstr("interrupted after"),
                    HasSubstr("checkpoint " + file("run/checkpoints")), HasSubstr("reports/")));
}

TEST_F(EndOfRun, ASecondInterruptEndsItAtOnceWithAllItsServers) {
  ChildProcess child = start_training({"--epochs", "1e6"});
  wait_for_steps(child);
  std::vector<int> ends;
  for (const char* role : {"ps", "worker"})
    for (const pid_t pid : servers(role)) ends.push_back(open_pidfd(pid));
  for (const pid_t pid : servers("ps")) ::kill(pid, SIGSTOP);  // so that saving cannot end

  ::kill(child.pid(), SIGINT);
  wait_for(child, [&] {
    ::kill(child.pid(), SIGINT);
    return false;
  });

  EXPECT_EQ(end_of(child).signal, SIGINT) << output();
  for (const int fd : ends) {
    pollfd wait{.fd = fd, .events = POLLIN};
    EXPECT_EQ(::poll(&wait, 1, kEndMs), 1);
    ::close(fd);
  }
}

TEST_F(EndOfRun, OutputThatNobodyReadsAnyMoreIsDroppedAndTheRunGoesOn) {
  const std::string command = program("cairn") + " train " + file("job.toml") +
                              " --epochs 300 --dir " + file("run") + " --report " +
                              file("report.json");
  ChildProcess shell =
      start({"sh", "-c", "{ " + command + "; echo $? > " + file("status") + "; } | head -n 1"});
  EXPECT_EQ(end_of(shell).shell_code(), 0) << output();
  EXPECT_EQ(folder_.read("status"), "0\n");
  EXPECT_TRUE(parse_json(folder_.read("report.json"), "report.json")["completed"].get<bool>());
}

TEST_F(EndOfRun, MissingTasksAreNamedTheStatusAnswersAndAnInterruptEndsTheWait) {
  ReservedPort ps, worker, chief;
  const Json cluster{
      {"ps", {ps.address()}}, {"worker", {worker.address()}}, {"chief", {chief.address()}}};
  const std::string config =
      "TF_CONFIG=" + json_text({{"cluster", cluster}, {"task", {{"type", "chief"}, {"index", 0}}}});
  ChildProcess child =
      start({program("cairn-coordinator"), file("job.toml"), "--dir", file("run")}, {config});
  wait_for(child,
           [this] { return output().find("waiting for /job:worker/task:0") != std::string::npos; });
  EXPECT_THAT(output(), HasSubstr("waiting for /job:ps/task:0 at " + ps.address()));

  ChildProcess status =
      start({program("cairn"), "status", "--address", chief.address()}, {}, "status");
  EXPECT_EQ(end_of(status).shell_code(), 0) << folder_.read("status");
  EXPECT_THAT(folder_.read("status"), HasSubstr("AWAY"));

  ::kill(child.pid(), SIGINT);
  EXPECT_EQ(end_of(child).shell_code(), 130) << output();
  EXPECT_THAT(output(), HasSubstr("nothing was trained"));
}

}  // namespace
}  // namespace cairn::tools
