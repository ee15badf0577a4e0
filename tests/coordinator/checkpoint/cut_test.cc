#include "coordinator/checkpoint/cut.h"

#include "tests/coordinator/engine/part_fixture.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two ps of one shard and two workers of one lane.
struct Cuts : PartTest {
  CutMaker cuts{{session, members, tables, lock, sources, progress, losses, ground.recorder},
                scheduler};

  explicit Cuts(EngineOptions options = {}) : PartTest(std::move(options)) {
    start(2, 2);
    for (std::size_t i : {0u, 1u}) fake_ps(i).calls.clear();
  }
  ~Cuts() override { stop(); }

  kj::Promise<Cut> begin() {
    auto cut = cuts.make(7, {}).start();
    settle();
    return cut;
  }
  Cut make() {
    auto cut = begin();
    return wait(cut);
  }
  std::vector<std::string> marks(std::size_t i) const { return fakes(i).calls_of("mark"); }
  std::vector<std::string> drops(std::size_t i) const { return fakes(i).calls_of("drop"); }
  const FakePs& fakes(std::size_t i) const { return const_cast<Cuts*>(this)->fake_ps(i); }
  // Whether both lanes hold their pushes.
  bool pushes_are_held() {
    EXPECT_EQ(fake_lane(0).holds_pushes, fake_lane(1).holds_pushes);
    return fake_lane(0).holds_pushes;
  }
  void lose(std::size_t i) {
    fake_ps(i).process.crash();
    settle();
  }
};

TEST_F(Cuts, MarkEveryShardWhilePushesAreHeld) {
  fake_ps(1).script.stall("mark");
  auto cut = begin();
  EXPECT_TRUE(pushes_are_held());
  EXPECT_TRUE(sources.writing);
  EXPECT_THAT(marks(0), ElementsAre("mark 1"));
  EXPECT_THAT(marks(1), ElementsAre("mark 1"));
  EXPECT_FALSE(ended(cut));

  fake_ps(1).script.let_go("mark");
  settle();

  EXPECT_TRUE(ended(cut));
  EXPECT_FALSE(pushes_are_held());
  EXPECT_TRUE(sources.writing);  // until the caller has saved the rows
  EXPECT_THAT(drops(0), IsEmpty());
}

TEST_F(Cuts, MarkNothingBeforeEveryLaneHoldsItsPushes) {
  fake_lane(1).script.stall("hold pushes");
  auto cut = begin();
  EXPECT_THAT(marks(0), IsEmpty());
  fake_lane(1).script.let_go("hold pushes");
  settle();
  EXPECT_TRUE(ended(cut));
}

TEST_F(Cuts, NoteTheStepAndTheLossesOfTheirMoment) {
  schedule_and_send();
  schedule_and_send();
  succeed(0, 1);
  losses.rebuilt(1, {.layout_version = 99});
  const Cut cut = make();
  succeed(1, 2);
  EXPECT_EQ(cut.id, 7u);
  EXPECT_EQ(cut.global_step, 1);
  EXPECT_EQ(cut.lost_updates, 1u);
  EXPECT_EQ(cut.holdings.covers, 1u);
  EXPECT_THAT(cut.holdings.missing, ElementsAre(0, 1));
  EXPECT_THAT(cut.attached, ElementsAre(1, 1));
  EXPECT_EQ(cut.layout, tables.synced());
}

TEST_F(Cuts, HoldWhatAnyShardHasApplied) {
  fake_ps(0).applied = {5, {{7, 9}}};
  fake_ps(1).applied = {6, {{8, 10}}};
  const Cut cut = make();
  EXPECT_EQ(cut.applied.low_watermark, 6u);
  EXPECT_THAT(cut.applied.ranges, ElementsAre(std::pair<std::uint64_t, std::uint64_t>(7, 10)));
}

TEST_F(Cuts, WaitUntilNoClosureIsTorn) {
  schedule_and_send();
  fake_lane(0).fail<AbortedError>(1, "the shard is another one");
  settle();
  ASSERT_TRUE(scheduler.any_torn());
  auto cut = begin();
  run_for(seconds(1));
  EXPECT_FALSE(pushes_are_held());
  EXPECT_THAT(marks(0), IsEmpty());
  succeed(1, 1);
  EXPECT_EQ(wait(cut).global_step, 1);
}

TEST_F(Cuts, WaitForAPsThatIsAway) {
  watch();
  lose(1);
  auto cut = begin();
  run_for(seconds(1));
  EXPECT_FALSE(pushes_are_held());
  fake_ps(1).start(new_process());
  run_for(seconds(1));
  EXPECT_TRUE(ended(cut));
}

TEST_F(Cuts, WaitWhileTablesAreTalkedAbout) {
  kj::Promise<Cut> cut = nullptr;
  {
    const TableLock::Hold hold(lock);
    cut = begin();
    EXPECT_FALSE(pushes_are_held());
    EXPECT_THAT(marks(0), IsEmpty());
  }
  settle();
  EXPECT_TRUE(ended(cut));
}

TEST_F(Cuts, CannotBeMadeWithoutAPsThatIsGivenUp) {
  ps(1).ready = false;
  ps(1).lost_for_good = true;
  ps(1).trouble = "killed";
  try {
    make();
    FAIL() << "it was made";
  } catch (const UnavailableError& error) {
    EXPECT_STREQ(error.what(), "no checkpoint can be made without /job:ps/task:1: killed");
  }
  EXPECT_FALSE(pushes_are_held());
}

// One shard has the push of a closure whose result is not known here: another may lack it.
TEST_F(Cuts, WithAnUpdateThatIsNotCommittedAreMadeAnew) {
  schedule_and_send();
  fake_ps(0).applied = {1, {{1, 2}}};
  auto cut = begin();
  EXPECT_FALSE(ended(cut));
  EXPECT_FALSE(pushes_are_held());
  EXPECT_FALSE(sources.writing);
  for (std::size_t i : {0u, 1u}) {
    EXPECT_THAT(marks(i), ElementsAre("mark 1"));
    EXPECT_THAT(drops(i), ElementsAre("drop 1"));
  }
  succeed(0, 1);
  const Cut made = wait(cut);
  EXPECT_EQ(made.mark, 2u);
  EXPECT_EQ(made.global_step, 1);
}

TEST_F(Cuts, ThatAShardRefusesFailAndReleaseThePushes) {
  fake_ps(1).script.fail<InternalError>("mark", "this shard has no state to mark");
  EXPECT_THROW(make(), InternalError);
  settle();
  EXPECT_FALSE(pushes_are_held());
  EXPECT_FALSE(sources.writing);
  EXPECT_THAT(drops(0), ElementsAre("drop 1"));
  EXPECT_THAT(drops(1), ElementsAre("drop 1"));
}

TEST_F(Cuts, DuringWhichAPsIsLostReleaseThePushesAndAreMadeAnewOnceItIsBack) {
  watch();
  fake_ps(1).script.stall("mark");
  auto cut = begin();
  ASSERT_TRUE(pushes_are_held());
  lose(1);
  EXPECT_FALSE(pushes_are_held());
  EXPECT_FALSE(sources.writing);
  EXPECT_THAT(drops(0), ElementsAre("drop 1"));
  EXPECT_FALSE(ended(cut));

  fake_ps(1).script.let_go("mark");
  fake_ps(1).start(new_process());
  const Cut made = wait(cut);
  EXPECT_EQ(made.mark, 2u);
  EXPECT_THAT(made.attached, ElementsAre(1, 2));
}

// It has answered, and is there: but a process that is attached again has forgotten its mark.
TEST_F(Cuts, DuringWhichAPsIsAttachedAgainAreMadeAnew) {
  watch();
  fake_ps(0).script.stall("mark");
  auto cut = begin();
  ASSERT_THAT(marks(1), SizeIs(1));
  fake_ps(1).process.cut_off();
  run_for(milliseconds(100));
  ASSERT_TRUE(members.all_ps_ready());
  fake_ps(0).script.let_go("mark");
  const Cut made = wait(cut);
  EXPECT_EQ(made.mark, 2u);
  EXPECT_THAT(marks(1), ElementsAre("mark 1", "mark 2"));
}

TEST_F(Cuts, DuringWhichAWorkerIsLostAreMadeAnewOnceItsClosuresHaveRun) {
  watch();
  schedule_and_send();
  fake_ps(0).script.stall("mark");
  auto cut = begin();
  fake_worker(0).process.crash();
  settle();
  fake_ps(0).script.let_go("mark");
  settle();
  EXPECT_FALSE(ended(cut));
  EXPECT_FALSE(fake_lane(1).holds_pushes);
  ASSERT_THAT(received(1), ElementsAre(1));
  succeed(1, 1);
  EXPECT_EQ(wait(cut).global_step, 1);
}

TEST_F(Cuts, ALaneThatDoesNotHoldItsPushesInTimeLetsTheOthersGoOn) {
  fake_lane(1).script.stall("hold pushes");
  auto cut = begin();
  EXPECT_TRUE(fake_lane(0).holds_pushes);
  run_for(seconds(30) + milliseconds(10));
  EXPECT_FALSE(ended(cut));
  EXPECT_FALSE(fake_lane(0).holds_pushes);
  fake_lane(1).script.let_go("hold pushes");
  EXPECT_GT(wait(cut).mark, 1u);
}

TEST_F(Cuts, AShardThatDoesNotMarkInTimeLetsTrainingGoOn) {
  fake_ps(1).script.stall("mark");
  auto cut = begin();
  EXPECT_TRUE(pushes_are_held());
  run_for(seconds(30) + milliseconds(10));
  EXPECT_FALSE(ended(cut));
  EXPECT_FALSE(pushes_are_held());
  EXPECT_THAT(drops(1), ElementsAre("drop 1"));
  fake_ps(1).script.let_go("mark");
  EXPECT_EQ(wait(cut).mark, 2u);
}

TEST_F(Cuts, TellHowLongPushesWereHeld) {
  fake_ps(1).script.stall("mark");
  auto cut = begin();
  run_for(seconds(2));
  fake_ps(1).script.let_go("mark");
  wait(cut);
  EXPECT_NEAR(session.stats.read().last_cut_seconds, 2, 0.1);
}

TEST_F(Cuts, AreForgottenByEveryShardThatIsThere) {
  watch();
  const Cut cut = make();
  lose(1);
  cuts.drop(cut.mark);
  settle();
  EXPECT_THAT(drops(0), Contains("drop 1"));
}

struct ImpatientCuts : Cuts {
  ImpatientCuts() : Cuts({.ps_wait = seconds(3)}) {}
};

TEST_F(ImpatientCuts, EndTheirWaitWhenThePsIsGivenUp) {
  watch();
  lose(1);
  auto cut = begin();
  run_for(seconds(5));
  ASSERT_TRUE(ended(cut));
  EXPECT_THROW(wait(cut), UnavailableError);
}

}  // namespace
}  // namespace cairn
