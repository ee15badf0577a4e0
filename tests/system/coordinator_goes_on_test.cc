// A coordinator with a journal dies, or stands still, and another one goes on: as real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <functional>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"
#include "tools/launch/local_cluster.h"

namespace cairn::tools {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kEndMs = 200'000, kLookMs = 20;
const std::string kSteps = "20000";

// One ps and one worker, which takes one closure after another, so that equal updates end in equal
// bits.
class CoordinatorGoesOn : public testing::Test {
 protected:
  CoordinatorGoesOn() {
    std::string rows;
    for (int i = 0; i < 512; ++i)
      rows += std::to_string(i % 7) + "," + std::to_string(i % 2) + "\n";
    folder_.write("data.csv", rows);
    write_job("bucketised = {x = [1, 3, 5]}");
  }
  void write_job(const std::string& feature) const {
    folder_.write("job.toml",
                  "[data]\ntrain = 'data.csv'\nbatch = 32\nshuffle = 100\n"
                  "[data.csv]\ncolumns = ['x:float32', 'y:float32']\nlabel = {column = 'y'}\n"
                  "[features]\nnumeric = 'x'\n" +
                      feature + "\n[model]\nkind = 'wide'\n[cluster]\npipeline_depth = 1\n");
  }
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string output(const std::string& name) const { return folder_.read(name); }
  LocalClusterOptions servers(const std::string& dir) const {
    return {.ps = 1,
            .workers = 1,
            .shards = 1,
            .lanes = 1,
            .dir = file(dir),
            .programs = CAIRN_PROGRAMS};
  }
  // A coordinator's process on these servers; its output is in the file `name`, its checkpoints in
  // the folder `run`.
  ChildProcess coordinator(const LocalCluster& servers, const std::string& name,
                           const std::string& run, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{std::string(CAIRN_PROGRAMS) + "/cairn-coordinator",
                                       file("job.toml"),
                                       "--steps",
                                       kSteps,
                                       "--dir",
                                       file(run),
                                       "--report",
                                       file(name + ".json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return ChildProcess({.arguments = std::move(arguments),
                         .environment = servers.environment("chief", 0),
                         .output_file = file(name)});
  }
  std::vector<std::string> journal() const {
    return {"--journal", file("journal"), "--journal-sync", "50ms"};
  }
  std::vector<std::string> standby() const {
    std::vector<std::string> flags = journal();
    flags.emplace_back("--standby");
    return flags;
  }
  int end_of(ChildProcess& child, const std::string& name) const {
    return end_in_time(child, kEndMs, output(name)).shell_code();
  }
  // Looks until the process has said so, or has ended.
  void wait_until_said(const ChildProcess& child, const std::string& name,
                       const std::string& text) const {
    pollfd wait{.fd = child.pidfd(), .events = POLLIN};
    for (int i = 0; i < kEndMs / kLookMs; ++i)
      if (output(name).find(text) != std::string::npos || ::poll(&wait, 1, kLookMs) != 0) break;
    ASSERT_THAT(output(name), HasSubstr(text));
  }
  void wait_for_steps(const ChildProcess& child, const std::string& name) const {
    wait_until_said(child, name, "examples/s");
  }
  static void kill(ChildProcess& child) {
    child.send(SIGKILL);
    EXPECT_EQ(child.wait().signal, SIGKILL) << "it had ended before";
  }
  // A run that has ended has taken as many steps, and has the same rows, as one that was let alone.
  void expect_undisturbed(const std::string& name, const std::string& run) const {
    LocalCluster alone(servers("alone"));
    alone.start();
    ChildProcess child = coordinator(alone, "undisturbed", "alone");
    ASSERT_EQ(end_of(child, "undisturbed"), 0) << output("undisturbed");
    const Json wanted = parse_json(output("undisturbed.json"), "the undisturbed report");
    const Json got = parse_json(output(name + ".json"), "the report");
    EXPECT_EQ(got["steps"], wanted["steps"]);
    EXPECT_TRUE(got["completed"].get<bool>());
    ChildProcess diff({.arguments = {std::string(CAIRN_PROGRAMS) + "/cairn", "ckpt", "diff",
                                     file("alone"), file(run)},
                       .output_file = file("diff")});
    EXPECT_EQ(end_of(diff, "diff"), 0) << output("diff");
  }

  TempFolder folder_;
};

TEST_F(CoordinatorGoesOn, AfterEachKillWithEveryStepOnce) {
  LocalCluster cluster(servers("cluster"));
  cluster.start();
  for (const char* life : {"first", "second"}) {
    ChildProcess child = coordinator(cluster, life, "run", journal());
    wait_for_steps(child, life);
    kill(child);
  }
  ChildProcess last = coordinator(cluster, "last", "run", journal());
  EXPECT_EQ(end_of(last, "last"), 0) << output("last");
  EXPECT_THAT(output("last"), AllOf(HasSubstr("goes on at step "), HasSubstr("journal")));
  expect_undisturbed("last", "run");
  // Once more: nothing is left to train.
  ChildProcess again = coordinator(cluster, "again", "run", journal());
  EXPECT_EQ(end_of(again, "again"), 0) << output("again");
  EXPECT_THAT(output("again"), HasSubstr("nothing is left to train"));
}

TEST_F(CoordinatorGoesOn, WithItsOwnJobOnly) {
  LocalCluster cluster(servers("cluster"));
  cluster.start();
  ChildProcess first = coordinator(cluster, "first", "run", journal());
  wait_for_steps(first, "first");
  kill(first);
  write_job("bucketised = {x = [1, 2, 3, 5]}");
  ChildProcess other = coordinator(cluster, "other", "run", journal());
  EXPECT_EQ(end_of(other, "other"), 1);
  EXPECT_THAT(output("other"), AllOf(HasSubstr("the journal in " + file("journal")),
                                     HasSubstr("another model"), HasSubstr("--journal")));
  write_job("bucketised = {x = [1, 3, 5]}");
  ChildProcess last = coordinator(cluster, "last", "run", journal());
  EXPECT_EQ(end_of(last, "last"), 0) << output("last");
  expect_undisturbed("last", "run");
}

TEST_F(CoordinatorGoesOn, AStandbyTakesOverOnceTheFirstIsSilentForASecond) {
  LocalCluster cluster(servers("cluster"));
  cluster.start();
  ChildProcess first = coordinator(cluster, "first", "run", journal());
  wait_for_steps(first, "first");
  ChildProcess second = coordinator(cluster, "second", "run", standby());
  wait_until_said(second, "second", "standby: waiting for session ");
  EXPECT_THAT(output("second"), HasSubstr(str("pid ", first.pid())));
  EXPECT_EQ(first.poll(), std::nullopt) << output("first");
  kill(first);
  const TimePoint killed = system_clock().now();
  wait_until_said(second, "second", "goes on at step ");
  const TimePoint went_on = system_clock().now();
  EXPECT_EQ(end_of(second, "second"), 0) << output("second");
  EXPECT_GE(went_on - killed, std::chrono::milliseconds(800));
  RecordProperty("seconds_until_it_went_on",
                 std::to_string(std::chrono::duration<double>(went_on - killed).count()));
  expect_undisturbed("second", "run");
}

// The first one holds the journal's folder, and comes to life again: it is told, and spoils
// nothing.
TEST_F(CoordinatorGoesOn, AStandbyTakesOverFromOneThatStandsStill) {
  LocalCluster cluster(servers("cluster"));
  cluster.start();
  ChildProcess first = coordinator(cluster, "first", "run", journal());
  wait_for_steps(first, "first");
  ChildProcess second = coordinator(cluster, "second", "run", standby());
  wait_until_said(second, "second", "standby: waiting for session ");
  first.send(SIGSTOP);
  wait_until_said(second, "second", "goes on at step ");
  first.send(SIGCONT);
  EXPECT_EQ(end_of(first, "first"), 1) << output("first");
  EXPECT_THAT(output("first"),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr(str("pid ", second.pid()))));
  EXPECT_EQ(end_of(second, "second"), 0) << output("second");
  expect_undisturbed("second", "run");
}

TEST_F(CoordinatorGoesOn, UnderCairnUpWhichStartsItAgain) {
  ChildProcess up(
      {.arguments = {std::string(CAIRN_PROGRAMS) + "/cairn", "up", "--ps", "1", "--workers", "1",
                     "--shards", "1", "--lanes", "1", "--dir", file("up"), "--",
                     std::string(CAIRN_PROGRAMS) + "/cairn-coordinator", file("job.toml"),
                     "--steps", kSteps, "--report", file("up.json")},
       .output_file = file("output")});
  wait_for_steps(up, "output");
  const Json description = parse_json(output("up/cluster.json"), "cluster.json");
  for (const auto& task : description.at("tasks"))
    if (task["role"] == "chief") ::kill(task["pid"].get<pid_t>(), SIGKILL);
  EXPECT_EQ(end_of(up, "output"), 0) << output("output");
  EXPECT_THAT(output("output"), AllOf(HasSubstr("killed by SIGKILL"), HasSubstr("started again"),
                                      HasSubstr("goes on at step ")));
  expect_undisturbed("up", "up");
}

TEST_F(CoordinatorGoesOn, FlagsOfTheJournalAreChecked) {
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{std::string(CAIRN_PROGRAMS) + "/cairn-coordinator",
                                       file("job.toml")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    folder_.write("refused", "");
    ChildProcess child({.arguments = std::move(arguments), .output_file = file("refused")});
    EXPECT_NE(end_of(child, "refused"), 0);
    return output("refused");
  };
  EXPECT_THAT(refused({"--standby"}), AllOf(HasSubstr("--standby"), HasSubstr("--journal")));
  EXPECT_THAT(refused({"--journal-sync", "50ms"}), HasSubstr("--journal"));
  for (const char* bad : {"soon", "50", "-1ms", "61s", "50 ms", "", "99999999999999999999s"})
    EXPECT_THAT(refused({"--journal", file("journal"), "--journal-sync", bad}),
                HasSubstr("--journal-sync"))
        << bad;
}

}  // namespace
}  // namespace cairn::tools
