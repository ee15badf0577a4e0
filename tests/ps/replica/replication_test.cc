// Primaries and backups over a simulated network.
#include <gmock/gmock.h>

#include "tests/ps/replica/three_ps.h"

namespace cairn::ps {
namespace {

using testing::HasSubstr;

TEST(Replication, EveryAnsweredPushIsOnEveryBackup) {
  ThreePs ps;
  ps.push(1, 0.5f);
  ps.set_backups({1, 2});
  ps.push(2, 0.25f);
  ps.until_caught_up();
  ps.push(3, -1.0f);
  const Floats rows = ps.primary().pull(0);
  ps.network.crash("ps-0");

  EXPECT_EQ(ps.promoted_rows(1), rows);
  EXPECT_EQ(ps.promoted_rows(2), rows);
}

TEST(Replication, ABackupHasCaughtUpOnlyOnceItHasAllThatWasAnswered) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ThreePs ps(20, seed, {.comparison = Duration(0)});
    ps.network.slow("ps-1", 5);
    ps.set_backups({1});
    BackupNews now;
    for (std::uint64_t closure = 1; now.caught_up.empty() || !now.caught_up[0]; ++closure) {
      ps.push(closure, 1);
      now = ps.news(0);
    }
    EXPECT_EQ(now.behind[0], 0u);
  }
}

TEST(Replication, NoPushIsAnsweredBeforeABackupThatHasCaughtUpHasIt) {
  ThreePs ps;
  ps.set_backups({1});
  ps.until_caught_up();
  ps.network.partition("ps-0", "ps-1");
  auto pushed = ps.primary().push_later(1, 0, Floats(1600, 1), 0, adagrad());
  ps.reactor.wait(ps.reactor.sleep(std::chrono::milliseconds(300)));
  ASSERT_FALSE(pushed.poll(ps.reactor.scope()));

  ps.network.heal("ps-0", "ps-1");
  ps.primary().wait(kj::mv(pushed));
  const Floats rows = ps.primary().pull(0);
  EXPECT_EQ(ps.promoted_rows(1), rows);
}

TEST(Replication, APushThatComesAgainIsNotAnsweredEarlierThanTheFirst) {
  ThreePs ps;
  ps.set_backups({1});
  ps.until_caught_up();
  ps.network.partition("ps-0", "ps-1");
  auto first = ps.primary().push_later(1, 0, Floats(1600, 1), 0, adagrad());
  auto again = ps.primary().push_later(1, 0, Floats(1600, 1), 0, adagrad());
  ps.reactor.wait(ps.reactor.sleep(std::chrono::milliseconds(300)));
  EXPECT_FALSE(again.poll(ps.reactor.scope()));
  EXPECT_FALSE(first.poll(ps.reactor.scope()));
}

TEST(Replication, ABackupThatFallsSilentIsReportedAndWaitedForUntilItIsTakenOut) {
  ThreePs ps;
  ps.set_backups({1});
  ps.until_caught_up();
  const auto before = ps.news(0);
  ps.network.partition_both("ps-0", "ps-1");
  auto pushed = ps.primary().push_later(1, 0, Floats(1600, 1), 0, adagrad());

  const auto after = ps.news(before.version);
  ASSERT_EQ(after.troubles.size(), 1u);
  EXPECT_THAT(after.troubles[0], HasSubstr("has not acknowledged"));
  EXPECT_FALSE(pushed.poll(ps.reactor.scope()));

  ps.set_backups({});
  ps.primary().wait(kj::mv(pushed));
}

TEST(Replication, ABackupThatIsAwayWhileItIsCopiedKeepsNobodyWaiting) {
  ThreePs ps;
  ps.network.crash("ps-1");
  ps.set_backups({1});
  ps.push(1, 1);  // answered
  auto now = ps.news(0);
  while (now.troubles[0].empty()) now = ps.news(now.version);
  ps.push(2, 1);
}

TEST(Replication, AnotherProcessAtTheBackupsAddressGetsNoRows) {
  ThreePs ps;
  auto request = ps.primary().ruled.setBackupsRequest();
  request.setSession(ShardHarness::kSession);
  ShardReplica other = ps.replica(1);
  other.process = 999;
  wire::write(request.initBackups(1)[0], other);
  ps.primary().wait(request.send().ignoreResult());
  auto now = ps.news(0);
  while (now.troubles[0].empty()) now = ps.news(now.version);
  EXPECT_THAT(now.troubles[0], HasSubstr("another process"));
}

TEST(Replication, APrimaryOfAnOlderEpochIsNotListenedTo) {
  ThreePs ps;
  ps.set_backups({1});
  ps.until_caught_up();
  const Floats rows = ps.promoted_rows(1);
  auto pushed = ps.primary().push_later(1, 0, Floats(1600, 1), 0, adagrad());
  auto now = ps.news(0);
  while (now.troubles[0].empty()) now = ps.news(now.version);

  EXPECT_THAT(now.troubles[0], HasSubstr("epoch"));
  EXPECT_FALSE(pushed.poll(ps.reactor.scope()));
  EXPECT_EQ(ps.promoted_rows(1), rows);
}

// Another ps has become the primary without that push, and this one is told to become its backup.
TEST(Replication, APushThatWaitsForABackupIsNotAnsweredOnceTheRowsBeginAnew) {
  ThreePs ps;
  ps.set_backups({1});
  ps.until_caught_up();
  ps.network.partition_both("ps-0", "ps-1");
  auto pushed = ps.primary().push_later(1, 0, Floats(1600, 1), 0, adagrad());
  ps.promoted_rows(0);
  EXPECT_THROW(ps.primary().wait(kj::mv(pushed)), UnavailableError);
}

TEST(Replication, ABackupThatCameBackIsCopiedAnewWhileRowsChange) {
  ThreePs ps;
  ps.set_backups({1});
  ps.until_caught_up();
  ps.network.partition_both("ps-0", "ps-1");
  auto pushed = ps.primary().push_later(1, 0, Floats(1600, 1), 0, adagrad());
  auto now = ps.news(0);
  while (now.troubles[0].empty()) now = ps.news(now.version);
  ps.set_backups({});
  ps.primary().wait(kj::mv(pushed));
  ps.push(2, 2);

  ps.network.heal_all();
  ps.set_backups({1});
  for (std::uint64_t closure = 3; closure < 9; ++closure) ps.push(closure, 0.125f);
  ps.until_caught_up();
  const Floats rows = ps.primary().pull(0);
  EXPECT_EQ(ps.promoted_rows(1), rows);
}

TEST(Replication, ABackupThatIsNamedLaterOwesNothingOfWhatWasBefore) {
  ThreePs ps;
  ps.set_backups({1});
  ps.until_caught_up();
  ps.push(1, 1);
  ps.set_backups({2});
  EXPECT_TRUE(ps.primary().push(1, 0, Floats(1600, 1), 0, adagrad()));  // a duplicate
  ps.until_caught_up();
  EXPECT_TRUE(ps.primary().push(1, 0, Floats(1600, 1), 0, adagrad()));
}

TEST(Replication, OneThatIsNamedAgainGoesOn) {
  ThreePs ps;
  ps.set_backups({1});
  ps.until_caught_up();
  ps.set_backups({1, 2});
  EXPECT_TRUE(ps.news(0).caught_up[0]);
  ps.until_caught_up();
}

TEST(Replication, OnlyAPsSendsRecordsAndOnlyTheCoordinatorNamesBackups) {
  ThreePs ps;
  const auto refused = [&](auto promise) -> std::string {
    try {
      ps.primary().wait(kj::mv(promise));
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  EXPECT_THAT(refused(ps.primary().shard.recordRequest().send().ignoreResult()),
              HasSubstr("Shard.record is for the ps"));
  EXPECT_THAT(refused(ps.primary().shard.setBackupsRequest().send().ignoreResult()),
              HasSubstr("Shard.setBackups is for the chief"));
  EXPECT_THAT(refused(ps.primary().shard.awaitBackupsRequest().send().ignoreResult()),
              HasSubstr("Shard.awaitBackups is for the chief"));
}

TEST(Replication, ACopyOfManyBlocksAndALargePushArrive) {
  ThreePs ps(300000);  // 4.8 MB of rows and as much of slots, 4.8 MB a push
  ps.push(1, 1);
  ps.set_backups({1});
  ps.until_caught_up();
  ps.push(2, 0.5f);
  const Floats rows = ps.primary().pull(0);
  EXPECT_EQ(ps.promoted_rows(1), rows);
}

}  // namespace
}  // namespace cairn::ps
