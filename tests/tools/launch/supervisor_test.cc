#include "tools/launch/supervisor.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "core/base/error.h"
#include "tests/tools/event_log.h"
#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Kind = RoleEvent::Kind;

class SupervisorTest : public testing::Test {
 protected:
  RoleSpec role(const std::string& name, int index, const std::string& script) {
    return {.role = name,
            .index = index,
            .command = {.arguments = {"sh", "-c", script},
                        .output_file = folder_.path() + "/" + name + ".log"}};
  }
  static bool gone(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

  TempFolder folder_;
  EventLog log_;
};

TEST_F(SupervisorTest, StartsEveryRoleAndLeavesNoneWhenItStops) {
  Supervisor supervisor({role("ps", 0, kServe), role("worker", 0, kServe)}, {}, log_.sink());
  supervisor.start();
  auto roles = supervisor.roles();
  ASSERT_EQ(roles.size(), 2u);
  EXPECT_GT(roles[0].pid, 0);
  EXPECT_FALSE(gone(roles[1].pid));

  supervisor.stop();

  EXPECT_TRUE(gone(roles[0].pid));
  EXPECT_TRUE(gone(roles[1].pid));
  EXPECT_EQ(supervisor.roles()[0].pid, -1);
}

TEST_F(SupervisorTest, ARoleThatIsKilledFromOutsideIsStartedAgain) {
  Supervisor supervisor({role("ps", 0, kServe), role("ps", 1, kServe)}, {}, log_.sink());
  supervisor.start();
  pid_t first = log_.wait(Kind::kStarted, "ps", 1).pid;

  ::kill(first, SIGKILL);

  RoleEvent death = log_.wait(Kind::kDied, "ps", 1);
  EXPECT_EQ(death.status.signal, SIGKILL);
  EXPECT_EQ(death.pid, first);
  EXPECT_FALSE(death.by_plan);
  RoleEvent second = log_.wait(Kind::kStarted, "ps", 1, 2);
  EXPECT_EQ(second.restarts, 1);
  EXPECT_NE(second.pid, first);
  EXPECT_EQ(supervisor.restarts("ps"), 1);
}

TEST_F(SupervisorTest, KillIsAFaultThatTheRoleComesBackFromEveryTime) {
  Supervisor supervisor({role("worker", 0, kServe)}, {.crashes_max = 1}, log_.sink());
  supervisor.start();

  for (int i = 1; i <= 4; ++i) {
    supervisor.kill("worker", 0);
    EXPECT_TRUE(log_.wait(Kind::kDied, "worker", 0, i).by_plan);
    log_.wait(Kind::kStarted, "worker", 0, i + 1);
  }

  EXPECT_EQ(log_.count(Kind::kGivenUp), 0);
  EXPECT_THROW(supervisor.kill("worker", 1), NotFoundError);
}

TEST_F(SupervisorTest, ARoleWhoseCommandLineIsWrongIsGivenUpAtOnce) {
  Supervisor supervisor({role("worker", 0, "echo --device: there is no GPU; exit 2")},
                        {.crashes_max = 1000}, log_.sink());
  supervisor.start();
  RoleEvent end = log_.wait(Kind::kGivenUp, "worker", 0);
  EXPECT_EQ(end.restarts, 0);
  EXPECT_THAT(end.message, testing::AllOf(HasSubstr("it ended once"), HasSubstr("exit status 2"),
                                          HasSubstr("there is no GPU")));
}

TEST_F(SupervisorTest, ARoleThatCannotStayUpIsGivenUpWithItsStatusAndTheEndOfItsLog) {
  Supervisor supervisor({role("ps", 0, "echo the disk is full; exit 3")},
                        {.first_backoff = milliseconds(1), .crashes_max = 3}, log_.sink());
  supervisor.start();

  RoleEvent end = log_.wait(Kind::kGivenUp, "ps", 0);

  EXPECT_EQ(end.status.code, 3);
  EXPECT_EQ(end.restarts, 3);
  EXPECT_THAT(end.message, testing::AllOf(HasSubstr("ps 0"), HasSubstr("exit status 3"),
                                          HasSubstr("the disk is full")));
  EXPECT_TRUE(supervisor.roles()[0].given_up);
}

TEST_F(SupervisorTest, DeathsAfterAHealthyLifeAreNeverTooMany) {
  Supervisor supervisor({role("ps", 0, "exit 3")}, {.healthy = milliseconds(0), .crashes_max = 1},
                        log_.sink());
  supervisor.start();

  log_.wait(Kind::kStarted, "ps", 0, 10);

  EXPECT_EQ(log_.count(Kind::kGivenUp), 0);
}

TEST_F(SupervisorTest, PlannedKillsComeOnceWhenTheirShareOfTheRunIsDone) {
  Supervisor supervisor({role("ps", 0, kServe), role("worker", 0, kServe)},
                        {.kills = {parse_kill("worker:0@40%"), parse_kill("ps:0@60%")}},
                        log_.sink());
  supervisor.start();

  supervisor.progress(0.39);
  supervisor.progress(0.5);
  log_.wait(Kind::kStarted, "worker", 0, 2);
  EXPECT_EQ(supervisor.restarts("ps"), 0);
  supervisor.progress(1.0);
  log_.wait(Kind::kStarted, "ps", 0, 2);

  EXPECT_EQ(supervisor.restarts("worker"), 1);
}

TEST_F(SupervisorTest, AKillDueWhileItsRoleIsDownWaitsUntilItIsBack) {
  // Both are due at once: the second finds the role dead, and comes when it has returned.
  Supervisor supervisor({role("worker", 0, kServe)},
                        {.kills = {parse_kill("worker:0@0s"), parse_kill("worker:0@0s")}},
                        log_.sink());
  supervisor.start();

  log_.wait(Kind::kStarted, "worker", 0, 3);

  EXPECT_EQ(supervisor.restarts("worker"), 2);
}

TEST_F(SupervisorTest, ARoleThatIgnoresSigtermIsKilledAfterTheGracePeriod) {
  std::string ready = folder_.path() + "/ready";
  ASSERT_EQ(::mkfifo(ready.c_str(), 0600), 0);
  Supervisor supervisor(
      {role("ps", 0, "trap '' TERM; echo ready > " + ready + "; while :; do sleep 600; done")},
      {.grace = milliseconds(20)}, log_.sink());
  supervisor.start();
  std::string word;
  std::ifstream(ready) >> word;
  pid_t pid = supervisor.roles()[0].pid;

  supervisor.stop();

  EXPECT_EQ(word, "ready");
  EXPECT_TRUE(gone(pid));
}

TEST_F(SupervisorTest, AStoppedProcessStillEndsOnSigterm) {
  Supervisor supervisor({role("ps", 0, kServe)}, {.grace = seconds(600)}, log_.sink());
  supervisor.start();
  pid_t pid = supervisor.roles()[0].pid;
  ::kill(pid, SIGSTOP);

  supervisor.stop();

  EXPECT_TRUE(gone(pid));
}

TEST_F(SupervisorTest, AProgramThatIsNotThereFailsTheStartAndLeavesNothingRunning) {
  RoleSpec missing{
      .role = "worker", .index = 0, .command = {.arguments = {folder_.path() + "/cairn-worker"}}};
  Supervisor supervisor({role("ps", 0, kServe), missing}, {}, log_.sink());

  EXPECT_THROW(supervisor.start(), NotFoundError);

  EXPECT_TRUE(gone(log_.wait(Kind::kStarted, "ps", 0).pid));
}

}  // namespace
}  // namespace cairn::tools
