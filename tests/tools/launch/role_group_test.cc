// When roles that only work together are ended, started again and given up; without processes.
#include "tools/launch/role_group.h"

#include <gmock/gmock.h>
#include <signal.h>

namespace cairn::tools {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr ExitStatus kWell{}, kFailed{.code = 7}, kKilled{.signal = SIGKILL};

struct Group : ::testing::Test {
  TimePoint now = TimePoint{} + minutes(1);
  RoleGroup group{{.role = "worker", .restarts_max = 3}, 3, seconds(10)};
  Group() { group.started(now); }
  void old() { now += minutes(1); }
  // All end: one with `status`, and the others because of it.
  RoleGroup::Outcome broken_by(int index, ExitStatus status) {
    group.ended(index, status, now);
    for (int i = 0; i < 3; ++i)
      if (i != index) group.ended(i, {.code = 1}, now);
    return group.outcome();
  }
};

TEST_F(Group, HasEndedWellIfAllOfItHave) {
  for (int i = 0; i < 3; ++i) group.ended(i, kWell, now);
  EXPECT_FALSE(group.is_ending());
  const auto outcome = group.outcome();
  EXPECT_FALSE(outcome.again);
  EXPECT_EQ(outcome.status.shell_code(), 0);
}

TEST_F(Group, IsStartedAgainIfARoleIsLost) {
  old();
  EXPECT_TRUE(broken_by(1, kFailed).again);
  EXPECT_EQ(group.restarts(), 1);
}

TEST_F(Group, GivesTheOthersTimeToEndByThemselvesAndThenEndsAndKillsThem) {
  group.ended(1, kKilled, now);
  EXPECT_TRUE(group.is_ending());
  EXPECT_EQ(group.due_signal(now), std::nullopt);
  now = *group.deadline();
  EXPECT_EQ(group.due_signal(now), SIGTERM);
  EXPECT_EQ(group.due_signal(now), std::nullopt);
  now = *group.deadline();
  EXPECT_EQ(group.due_signal(now), SIGKILL);
}

TEST_F(Group, TakesAKilledRoleForTheCauseWhicheverEndWasSeenFirst) {
  old();
  RoleGroup unlucky({.role = "worker", .restarts_max = 0}, 2, seconds(10));
  unlucky.started(TimePoint{});
  unlucky.ended(0, kFailed, now);
  unlucky.ended(1, kKilled, now);
  EXPECT_EQ(unlucky.outcome().status.shell_code(), 137);
}

TEST_F(Group, IsGivenUpIfARoleEndsByItselfSoonAfterTheStart) {
  const auto outcome = broken_by(2, kFailed);
  EXPECT_FALSE(outcome.again);
  EXPECT_EQ(outcome.status.code, 7);
  EXPECT_THAT(outcome.text, HasSubstr("worker 2 ended with exit status 7 soon after its start"));
}

TEST_F(Group, IsGivenUpAfterThreeYoungEndsInARow) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(broken_by(0, kKilled).again);
    group.started(now);
  }
  const auto outcome = broken_by(0, kKilled);
  EXPECT_FALSE(outcome.again);
  EXPECT_THAT(outcome.text, HasSubstr("started again 2 times"));
}

TEST_F(Group, IsGivenUpAfterAsManyRestartsAsThereMayBe) {
  for (int i = 0; i < 3; ++i) {
    old();
    EXPECT_TRUE(broken_by(0, kFailed).again);
    group.started(now);
  }
  old();
  EXPECT_FALSE(broken_by(0, kFailed).again);
}

TEST_F(Group, ComesBackFromPlannedKillsEveryTime) {
  for (int i = 0; i < 9; ++i) {
    group.planned();
    EXPECT_TRUE(broken_by(1, kKilled).again);
    group.started(now);
  }
  EXPECT_EQ(group.restarts(), 9);
}

TEST_F(Group, IsNotStartedAgainOnceItWasAskedToEnd) {
  EXPECT_EQ(group.asked_to_end(now), 1);
  EXPECT_EQ(group.asked_to_end(now), 2);
  EXPECT_GT(*group.deadline() - now, minutes(5));  // a checkpoint may take its time
  group.ended(0, {.code = 9}, now);
  group.ended(1, kFailed, now);
  group.ended(2, kFailed, now);
  const auto outcome = group.outcome();
  EXPECT_FALSE(outcome.again);
  EXPECT_EQ(outcome.status.code, 9);  // the chief's
  EXPECT_EQ(outcome.text, "");
}

}  // namespace
}  // namespace cairn::tools
