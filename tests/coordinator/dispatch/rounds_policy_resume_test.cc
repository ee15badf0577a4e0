// Policies of rounds go on with the closures that an earlier coordinator had sent, and with the
// round that it was having applied.
#include <optional>
#include <set>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "tests/coordinator/dispatch/rounds_fixture.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct GoingOn : InRounds {
  using Member = journal::RoundNamed::Member;
  static constexpr std::uint64_t kFirstOfTerm = (std::uint64_t{1} << 40) + 1;  // number of a round
  explicit GoingOn(std::uint32_t backups = 0) : InRounds(backups) { session.term = 2; }

  // So many closures are open, of which `members` were being applied as round 7, step 4.
  void resume(std::uint64_t closures, std::vector<Member> members) {
    std::vector<std::shared_ptr<Closure>> open;
    for (std::uint64_t sequence = 1; sequence <= closures; ++sequence) {
      open.push_back(std::make_shared<Closure>());
      open.back()->sequence = sequence;
      open.back()->function = function;
      open.back()->global_step = 3;
    }
    std::set<std::uint64_t> running;
    for (const Member& member : members) running.insert(member.sequence);
    std::optional<journal::RoundNamed> round;
    if (!members.empty()) round = journal::RoundNamed{7, 4, std::move(members)};
    session.queue.resume(open, closures + 1, running);
    policy->resume(open, round);
    send();
  }
};

TEST_F(GoingOn, ARoundThatWasBeingAppliedIsAppliedBeforeAnythingIsSent) {
  fake_ps(0).script.stall("apply");
  resume(3, {{0, 1, 1}, {5, 3, 1}});
  EXPECT_THAT(applied(), ElementsAre("apply 7: 1 3"));
  EXPECT_THAT(received(0), IsEmpty());
  fake_ps(0).script.let_go("apply");
  settle();
  EXPECT_EQ(progress.global_step(), 1);
  EXPECT_THAT(received(0), ElementsAre(2));
  EXPECT_THAT(fake_lane(0).shares, ElementsAre(FakeLane::Share{kFirstOfTerm, 0}));
  EXPECT_EQ(fake_lane(0).received[0].step, 0);  // that of its new round
}

TEST_F(GoingOn, IfAShardLacksSharesTheMembersRunAgainUnderTheirNumbersAndNoneJoinsThem) {
  fake_ps(0).script.fail<AbortedError>("apply", "shares are gone");
  resume(3, {{1, 1, 1}, {5, 3, 1}});
  EXPECT_THAT(received(0), ElementsAre(1));
  EXPECT_THAT(received(1), ElementsAre(3));
  EXPECT_THAT(fake_lane(0).shares, ElementsAre(FakeLane::Share{kFirstOfTerm, 1}));
  EXPECT_THAT(fake_lane(1).shares, ElementsAre(FakeLane::Share{kFirstOfTerm, 5}));
  EXPECT_EQ(fake_lane(0).received[0].step, 4);
  fake_ps(0).script.mend("apply");
  succeed(1, 3);
  succeed(0, 1);
  EXPECT_THAT(applied(), ElementsAre("apply 7: 1 3", str("apply ", kFirstOfTerm, ": 1 3")));
  EXPECT_THAT(received(0), ElementsAre(1, 2));
}

TEST_F(GoingOn, NoneJoinsTheRoundWhileItCannotBeAppliedYet) {
  auto held = scheduler.hold_pushes().start();
  settle();
  resume(3, {{0, 1, 1}, {5, 3, 1}});
  EXPECT_THAT(applied(), IsEmpty());
  EXPECT_THAT(received(0), IsEmpty());
  scheduler.release_pushes();
  settle();
  EXPECT_THAT(applied(), ElementsAre("apply 7: 1 3"));
  EXPECT_THAT(received(0), ElementsAre(2));
}

TEST_F(GoingOn, ARoundThatIsShortWaitsForNoProgram) {
  resume(1, {});
  succeed(0, 1);
  EXPECT_THAT(applied(), ElementsAre(str("apply ", kFirstOfTerm, ": 1")));
  EXPECT_TRUE(session.queue.done());
}

struct GoingOnWithABackup : GoingOn {
  GoingOnWithABackup() : GoingOn(1) {}
};

// The earlier coordinator may have left it out of its last round.
TEST_F(GoingOnWithABackup, NoneIsLeftOut) {
  resume(2, {});
  succeed(0, 1);
  EXPECT_THAT(applied(), IsEmpty());
  succeed(1, 2);
  EXPECT_THAT(applied(), ElementsAre(str("apply ", kFirstOfTerm, ": 1 2")));
}

// Workers know the groups of earlier terms by their numbers.
struct HybridGroups : PartTest {
  HybridGroups() : PartTest(in_groups()) { start(1, 2); }
  static EngineOptions in_groups() {
    EngineOptions options;
    options.consistency = HybridConsistency::make();
    return options;
  }
};

TEST_F(HybridGroups, HaveOtherNumbersInEachTerm) {
  session.term = 3;
  schedule();
  schedule_and_send();
  EXPECT_THAT(fake_lane(0).groups, ElementsAre(session.number + 2 * (std::uint64_t{1} << 40)));
  EXPECT_THAT(received(0), ElementsAre(1));
}

}  // namespace
}  // namespace cairn
