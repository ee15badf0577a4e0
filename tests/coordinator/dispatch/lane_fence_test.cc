#include "coordinator/dispatch/lane_fence.h"

#include "tests/coordinator/engine/part_fixture.h"

namespace cairn {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Lanes are connected once each as the cluster starts; only what is fenced later is looked at.
struct Fencing : PartTest {
  void begin(std::size_t ps, std::size_t workers, std::uint32_t threads = 1) {
    start(ps, workers, threads);
    for (std::size_t i = 0; i < ps; ++i) fake_ps(i).fences.clear();
  }
  void lose(std::size_t i) {
    std::vector<std::shared_ptr<Closure>> interrupted;
    scheduler.abandon(lane(i), interrupted);
  }
  void raise() { ground.reactor.wait(fence.raise()); }
};

TEST_F(Fencing, NumbersIncarnationsUpwards) {
  const std::uint64_t first = fence.next_incarnation().number;
  EXPECT_GT(first, 0u);  // which stands for a lane that is lost
  EXPECT_EQ(fence.next_incarnation(), first + 1);
  EXPECT_EQ(fence.next_incarnation(), first + 2);
}

TEST_F(Fencing, OfALaterTermShutsOutAllThatEarlierOnesHaveNumbered) {
  begin(1, 1);
  const std::uint64_t earlier = fence.next_incarnation().number;
  lose(0);
  session.term = 2;
  LaneFence later{session, members};
  ground.reactor.wait(later.raise());
  ASSERT_THAT(fake_ps(0).fences, SizeIs(1));
  EXPECT_GE(fake_ps(0).fences[0].newest, earlier);
  EXPECT_GT(later.next_incarnation().number, fake_ps(0).fences[0].newest);
}

TEST_F(Fencing, NamesTheNewestIncarnationAndThoseThatLive) {
  begin(1, 3);
  ASSERT_EQ(incarnation_of(lane(2)), 3u);
  lose(1);
  raise();
  EXPECT_THAT(fake_ps(0).fences, ElementsAre(FakePs::Fence{3, {1, 3}}));
}

TEST_F(Fencing, ReachesEveryShardOfEveryPs) {
  begin(2, 1, 2);
  lose(0);
  raise();
  EXPECT_THAT(fake_ps(0).fences, SizeIs(2));
  EXPECT_THAT(fake_ps(1).fences, SizeIs(2));
}

TEST_F(Fencing, HasEndedOnlyOnceEveryPsHasAnswered) {
  begin(2, 1);
  lose(0);
  fake_ps(1).script.stall("fence");
  auto raised = fence.raise().start();
  settle();
  EXPECT_THAT(fake_ps(1).fences, SizeIs(1));
  EXPECT_FALSE(ended(raised));
  fake_ps(1).script.let_go("fence");
  settle();
  EXPECT_TRUE(ended(raised));
}

// A ps that is being attached compares the number before and after its own fence.
TEST_F(Fencing, IsCountedBeforeAnyShardHasAnswered) {
  begin(1, 1);
  fake_ps(0).script.stall("fence");
  const std::uint64_t before = fence.raised();
  auto raised = fence.raise().start();
  EXPECT_EQ(fence.raised(), before + 1);
}

TEST_F(Fencing, LeavesAPsThatIsAwayToItsAttaching) {
  begin(2, 1);
  ps(0).ready = false;
  raise();
  EXPECT_THAT(fake_ps(0).fences, IsEmpty());
  EXPECT_THAT(fake_ps(1).fences, SizeIs(1));
}

TEST_F(Fencing, ALaneThatIsLostWhileOneShardAnswersIsFencedOnTheNext) {
  begin(1, 2, 2);  // four lanes, two shards
  lose(0);
  fake_ps(0).script.stall("fence");
  auto raised = fence.raise().start();
  settle();
  lose(2);
  fake_ps(0).script.let_go("fence");
  wait(raised);
  EXPECT_THAT(fake_ps(0).fences,
              ElementsAre(FakePs::Fence{4, {2, 3, 4}}, FakePs::Fence{4, {2, 4}}));
}

TEST_F(Fencing, CutsOffAPsThatDoesNotAnswerInTime) {
  begin(2, 1);
  fake_ps(0).script.stall("fence");
  auto raised = fence.raise().start();
  run_for(seconds(9));
  EXPECT_FALSE(ended(raised));
  run_for(seconds(2));
  EXPECT_TRUE(ended(raised));
  EXPECT_FALSE(ps(0).ready);
  EXPECT_FALSE(ps(0).control->connection().connected());
  EXPECT_THAT(fake_ps(1).fences, SizeIs(1));
  EXPECT_TRUE(ps(1).ready);
}

TEST_F(Fencing, APsThatIsLostOnTheWayHoldsItUpNoLonger) {
  begin(2, 1);
  fake_ps(0).script.stall("fence");
  auto raised = fence.raise().start();
  settle();
  fake_ps(0).process.crash();
  settle();
  EXPECT_TRUE(ended(raised));
  EXPECT_THAT(fake_ps(1).fences, SizeIs(1));
}

TEST_F(Fencing, RaisedOnOnePsTellsOfItsErrors) {
  begin(1, 1);
  fake_ps(0).script.fail<InternalError>("fence", "no session");
  EXPECT_THROW(ground.reactor.wait(fence.raise_on(&ps(0))), InternalError);
}

}  // namespace
}  // namespace cairn
