// bounded(k): starts are held back so that no update is k steps late, and nothing else changes.
#include "coordinator/dispatch/bounded_policy.h"

#include <algorithm>

#include "core/base/json.h"
#include "testing/simulated_cluster.h"
#include "tests/coordinator/engine/part_fixture.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

EngineOptions bounded_by(std::uint32_t steps) {
  EngineOptions options;
  options.consistency = Consistency::bounded(steps);
  return options;
}

TEST(ConsistencyOfARun, SaysItsNameAndRefusesABoundThatNobodyCouldKeep) {
  EXPECT_EQ(Consistency().text(), "asynchronous");
  EXPECT_EQ(Consistency::bounded(4).text(), "bounded(4)");
  EXPECT_THROW(Consistency::bounded(0), InvalidArgumentError);
}

// Two steps of two lanes: with the oldest closure that is open there may be three others.
struct BoundedByTwo : PartTest {
  BoundedByTwo() : PartTest(bounded_by(2)) { start(1, 2); }

  std::shared_ptr<Closure> schedule_read() {
    auto closure = std::make_shared<Closure>();
    closure->function = read;
    session.queue.put(closure);
    return closure;
  }
  // Closure 1 stays at worker 0. Worker 1 does all that may be done meanwhile: 2, 3 and 4.
  void run_into_the_bound() {
    for (int i = 0; i < 6; ++i) schedule();
    send();
    for (std::uint64_t sequence : {2, 3, 4}) succeed(1, sequence);
    ASSERT_THAT(received(0), ElementsAre(1));
    ASSERT_THAT(received(1), ElementsAre(2, 3, 4));
  }
  std::vector<std::uint64_t> sent() {
    std::vector<std::uint64_t> all = received(0);
    const auto others = received(1);
    all.insert(all.end(), others.begin(), others.end());
    std::sort(all.begin(), all.end());
    return all;
  }
  std::shared_ptr<RegisteredFunction> read = [this] {
    auto made = std::make_shared<RegisteredFunction>(*function);
    made->id = 1;
    made->name = "read";
    made->updates = false;
    return made;
  }();
};

TEST_F(BoundedByTwo, HoldsBackWhatWouldMakeTheOldestClosureTooStale) {
  run_into_the_bound();
  EXPECT_EQ(gate.obstacle(*session.queue.front()),
            "waiting for the bound: closure 1 on /job:worker/task:0 lane 0 is 3 updates behind, "
            "with 0 more under way; bounded(2) allows 3");
  succeed(0, 1);
  EXPECT_THAT(sent(), ElementsAre(1, 2, 3, 4, 5, 6));
}

// Closure 2 left with closure 1 open, and counts it for as long as it is open itself.
TEST_F(BoundedByTwo, CountsWhatWasOpenWhenAClosureLeft) {
  for (int i = 0; i < 8; ++i) schedule();
  send();
  for (std::uint64_t sequence : {1, 3, 4}) succeed(0, sequence);
  EXPECT_THAT(received(0), ElementsAre(1, 3, 4));
  EXPECT_THAT(gate.obstacle(*session.queue.front()), HasSubstr("closure 2 on /job:worker/task:1"));
  succeed(1, 2);
  EXPECT_THAT(sent(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(BoundedByTwo, AClosureThatRunsAgainIsNotHeldBackAndKeepsItsPlace) {
  run_into_the_bound();
  fake_lane(0).fail<UnavailableError>(1, "the ps is away");
  settle();
  EXPECT_THAT(gate.obstacle(*session.queue.front()),
              HasSubstr("closure 1 (to be run again) is 3 updates behind"));
  run_for(milliseconds(50));
  send();
  EXPECT_THAT(sent(), ElementsAre(1, 1, 2, 3, 4));
  succeed(received(0).size() == 2 ? 0 : 1, 1);
  EXPECT_THAT(sent(), ElementsAre(1, 1, 2, 3, 4, 5, 6));
}

TEST_F(BoundedByTwo, ALostLanesClosureHoldsOthersBackUntilAnotherHasRunIt) {
  run_into_the_bound();
  watch();
  fake_worker(0).process.crash();
  run_for(seconds(1));
  EXPECT_THAT(received(1), ElementsAre(2, 3, 4, 1));
  succeed(1, 1);
  EXPECT_THAT(received(1), ElementsAre(2, 3, 4, 1, 5));
}

TEST_F(BoundedByTwo, WhatUpdatesNothingIsNotCounted) {
  schedule_and_send();
  for (std::uint64_t sequence = 2; sequence < 10; ++sequence) {
    schedule_read();
    send();
    succeed(1, sequence);
  }
  schedule_and_send();
  EXPECT_THAT(received(1), SizeIs(9));
}

TEST_F(BoundedByTwo, AClosureThatFailsHoldsNobodyBackAnyMore) {
  run_into_the_bound();
  fake_lane(0).fail<InvalidArgumentError>(1, "no such row");
  settle();
  EXPECT_THAT(queue_error(), HasSubstr("no such row"));
  for (int i = 0; i < 2; ++i) schedule_and_send();
  EXPECT_THAT(sent(), ElementsAre(1, 2, 3, 4, 7, 8));
}

// Closures 1 and 2 come back from lost workers, and are cancelled for the error of 3.
TEST_F(BoundedByTwo, AClosureThatIsCancelledHoldsNobodyBackAnyMore) {
  for (int i = 0; i < 2; ++i) schedule_and_send();
  watch();
  for (std::size_t i : {0, 1}) fake_worker(i).process.crash();
  run_for(milliseconds(100));
  session.queue.fail_all(std::make_exception_ptr(UnavailableError("nobody is left")));
  EXPECT_THAT(queue_error(), HasSubstr("nobody is left"));
  for (std::size_t i : {0, 1}) fake_worker(i).start(new_process());
  for (int i = 0; i < 4; ++i) schedule();
  run_for(seconds(2));
  succeed(0, received(0).back());
  succeed(1, received(1).back());
  EXPECT_THAT(sent(), ElementsAre(1, 2, 3, 4, 5, 6));
}

SimulatedClusterOptions cluster_of(int workers, Consistency consistency) {
  SimulatedClusterOptions options{.ps = 1, .workers = workers};
  options.strategy.consistency = consistency;
  return options;
}

// Its second update needs what the first one made, so that each closure pushes twice, which uses up
// the bound of two lanes: only one may run at a time, and each sees what the one before it left.
TEST(BoundedStaleness, CountsEachPushOfAClosure) {
  SimulatedCluster cluster(cluster_of(2, Consistency::bounded(1)));
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  Function train = cluster.strategy().function([&] {
    counters.v.assign_add(Array(1.0f));
    counters.w.assign_add(counters.v.read());
  });
  constexpr int kClosures = 20;
  for (int i = 0; i < kClosures; ++i) coordinator.schedule(train);
  coordinator.join(kPatience);
  EXPECT_EQ(counters.value_of_w(), kClosures * (kClosures + 1) / 2.0f);
}

// A step reads w and moves it, so that it pulls and pushes.
Function step_of(Strategy& strategy, const Counters& counters) {
  return strategy.function([&counters] {
    counters.w.update({.kind = RuleKind::kSgd}, counters.w.read() * Array(0.5f), Array(0.1f));
  });
}

// The ps's answers do not reach worker 1 for a while; the coordinator reaches all three.
TEST(BoundedStaleness, AClosureThatStandsStillIsNamedInTheStatus) {
  SimulatedCluster cluster(cluster_of(2, Consistency::bounded(2)));
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  Function train = step_of(cluster.strategy(), counters);
  const auto status = [&] { return parse_json(coordinator.status_json(), "the status"); };
  for (int i = 0; i < 4; ++i) coordinator.schedule(train);
  coordinator.join(kPatience);
  cluster.network().partition("ps0", "worker1");
  for (int i = 0; i < 40; ++i) coordinator.schedule(train);
  cluster.run_for(seconds(2));
  EXPECT_EQ(status()["consistency"], "bounded(2)");
  EXPECT_THAT(status()["held_by_bound"].get<std::string>(),
              HasSubstr("on /job:worker/task:1 lane 0 is 3 updates behind"));
  cluster.network().partition("ps0", "worker0");  // so that it cannot run there either
  cluster.run_for(seconds(70));
  std::vector<std::string> stuck;
  const Json later = status();
  for (const Json& one : later["stuck"]) stuck.push_back(one["text"].get<std::string>());
  EXPECT_THAT(stuck, Contains(HasSubstr("queued, waiting for the bound: closure ")));
  cluster.network().heal_all();
  coordinator.join(kPatience);
  cluster.run_for(seconds(1));
  EXPECT_FALSE(status().contains("held_by_bound"));
}

}  // namespace
}  // namespace cairn
