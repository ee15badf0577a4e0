// A primary that may have been replaced answers only while it hears of others.
#include <gmock/gmock.h>

#include "rpc/loop/task_group.h"
#include "tests/ps/replica/three_ps.h"

namespace cairn::ps {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

// Ps 0 has an open shard and a coordinator on another host, whose heartbeats it hears. What clients
// say comes from a third one.
class ShardLease : public testing::Test {
 protected:
  explicit ShardLease() {
    control_ = ps.reactor.wait(
        ps.network.host("chief").connect(ps.reactor, ps.servers[0]->address(),
                                         coordinator_hello_to(rpc::kControlEndpoint), kPatience));
    auto join = control_->bootstrap<wire::TaskControl>().joinRequest();
    join.initClaim().setSession(ShardHarness::kSession);
    ps.reactor.wait(join.send().ignoreResult());
    pings_.spawn("heartbeats", ping_on(*control_, ps.reactor));
  }
  ~ShardLease() noexcept override { pings_.cancel_all(); }

  static rpc::Task<void> ping_on(rpc::Connection& control, rpc::Reactor& reactor) {
    for (;;) {
      co_await control.bootstrap<wire::TaskControl>().pingRequest().send().ignoreResult();
      co_await reactor.sleep(150ms);
    }
  }
  void begin(const std::vector<std::uint32_t>& backups) {
    ps.set_backups(backups, Lease::kLeased);
    ps.until_caught_up();
    pass(100ms);  // until the backups have compared their rows, and nothing is on its way to them
  }
  void pass(Duration time) { ps.reactor.wait(ps.reactor.sleep(time)); }
  void lose_coordinator() { ps.network.partition_both("chief", "ps-0"); }
  void lose_backup(std::uint32_t i) { ps.network.partition_both("ps-0", ThreePs::name(i)); }
  // The refusal of a pull that is asked now; empty: it is answered.
  std::string pulled() {
    try {
      ps.primary().pull(0);
    } catch (const UnavailableError& error) {
      return error.what();
    }
    return "";
  }
  kj::Promise<bool> push_later(std::uint64_t closure) {
    return ps.primary().push_later(closure, 0, Floats(1600, 1), 0, adagrad());
  }
  bool is_answered(kj::Promise<bool>& push) { return push.poll(ps.reactor.scope()); }

  ThreePs ps;

 private:
  std::unique_ptr<rpc::Connection> control_;
  rpc::TaskGroup pings_;
};

TEST_F(ShardLease, APrimaryThatReachesNeitherCoordinatorNorBackupRefusesAndChangesNothing) {
  begin({1});
  const Floats rows = ps.primary().pull(0);
  lose_coordinator();
  lose_backup(1);
  pass(1300ms);

  const Duration before = ps.reactor.now();
  EXPECT_THAT(pulled(), HasSubstr("heard neither of its coordinator nor of its backups"));
  EXPECT_LE(ps.reactor.now() - before, 1100ms);
  EXPECT_THROW(ps.primary().wait(push_later(1)), UnavailableError);

  ps.network.heal_all();
  ps.set_backups({}, Lease::kLeased);
  EXPECT_EQ(ps.primary().pull(0), rows);
  EXPECT_FALSE(ps.primary().wait(push_later(1)));  // no duplicate
}

TEST_F(ShardLease, APrimaryThatReachesItsBackupGoesOnWithoutACoordinator) {
  begin({1});
  lose_coordinator();
  for (std::uint64_t closure = 1; closure < 5; ++closure) {
    pass(2s);
    EXPECT_EQ(pulled(), "");
    pass(2s);
    EXPECT_FALSE(ps.primary().wait(push_later(closure)));
  }
  const Floats rows = ps.primary().pull(0);
  EXPECT_EQ(ps.promoted_rows(1), rows);
}

TEST_F(ShardLease, APrimaryThatReachesItsCoordinatorAnswersPullsAndHasPushesWait) {
  begin({1});
  lose_backup(1);
  auto pushed = push_later(1);
  for (int second = 0; second < 3; ++second) {
    pass(1s);
    EXPECT_EQ(pulled(), "");
    EXPECT_FALSE(is_answered(pushed));
  }
  ps.set_backups({}, Lease::kLeased);
  EXPECT_FALSE(ps.primary().wait(kj::mv(pushed)));
}

TEST_F(ShardLease, ARequestThatWaitsIsAnsweredOnceTheCoordinatorOrTheBackupIsHeard) {
  for (const bool backup : {false, true}) {
    SCOPED_TRACE(backup);
    ps.network.heal_all();
    begin({1});
    lose_coordinator();
    lose_backup(1);
    pass(1300ms);
    auto pulls = ps.primary().pull_later(0);
    pass(500ms);
    EXPECT_FALSE(pulls.poll(ps.reactor.scope()));
    ps.network.heal(backup ? "ps-1" : "chief", "ps-0");
    pass(100ms);
    EXPECT_TRUE(pulls.poll(ps.reactor.scope()));
    ps.primary().wait(kj::mv(pulls));
    ps.set_backups({});
  }
}

TEST_F(ShardLease, ABackupThatHasBecomeThePrimaryDoesNotVouchForTheEarlierOne) {
  begin({1});
  lose_coordinator();
  pass(2s);
  EXPECT_EQ(pulled(), "");
  ps.promoted_rows(1);
  pass(1100ms);
  EXPECT_NE(pulled(), "");
}

// Either could have been made the primary.
TEST_F(ShardLease, OneOfTwoBackupsIsNotEnoughWithoutACoordinator) {
  begin({1, 2});
  lose_coordinator();
  lose_backup(2);
  pass(1300ms);
  EXPECT_NE(pulled(), "");
}

TEST_F(ShardLease, WithoutBackupsTheCoordinatorAloneCounts) {
  begin({});
  pass(3s);
  EXPECT_EQ(pulled(), "");
  lose_coordinator();
  pass(1300ms);
  EXPECT_NE(pulled(), "");
  ps.network.heal_all();
  pass(300ms);
  EXPECT_EQ(pulled(), "");
}

TEST_F(ShardLease, ABackupWhoseRowsAreStillBeingCopiedDoesNotVouch) {
  lose_backup(1);
  ps.set_backups({1}, Lease::kLeased);
  lose_coordinator();
  pass(1300ms);
  EXPECT_NE(pulled(), "");
}

TEST_F(ShardLease, AShardThatIsNotLeasedAsksNobody) {
  ps.set_backups({1});
  ps.until_caught_up();
  lose_coordinator();
  lose_backup(1);
  pass(10s);
  EXPECT_EQ(pulled(), "");
}

TEST_F(ShardLease, AnotherEpochEndsIt) {
  begin({});
  lose_coordinator();
  pass(3s);
  EXPECT_EQ(ps.promoted_rows(0).size(), 1600u);
}

}  // namespace
}  // namespace cairn::ps
