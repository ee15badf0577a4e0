// synchronous(b): closures become members of rounds, and each round is applied once, as a sum.
#include "coordinator/dispatch/synchronous_policy.h"

#include <algorithm>

#include "core/base/json.h"
#include "testing/simulated_cluster.h"
#include "tests/coordinator/dispatch/rounds_fixture.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ConsistencyInRounds, SaysItsName) {
  EXPECT_EQ(Consistency::synchronous().text(), "synchronous(0)");
  EXPECT_EQ(Consistency::synchronous(2).text(), "synchronous(2)");
  EXPECT_FALSE(Consistency::bounded(2).in_rounds());
}

TEST_F(InRounds, MembersShareAStepAndAreAppliedTogether) {
  const auto one = schedule(), two = schedule();
  schedule_many(2);
  EXPECT_THAT(received(0), ElementsAre(1));
  EXPECT_THAT(received(1), ElementsAre(2));
  EXPECT_EQ(fake_lane(0).received[0].step, fake_lane(1).received[0].step);
  EXPECT_THAT(fake_lane(1).shares, ElementsAre(FakeLane::Share{1, 1}));

  succeed(1, 2);
  EXPECT_THAT(applied(), IsEmpty());
  EXPECT_FALSE(done(two));
  succeed(0, 1);

  EXPECT_THAT(applied(), ElementsAre("apply 1: 1 2"));  // in their order, not as they answered
  EXPECT_TRUE(done(one) && done(two));
  EXPECT_EQ(progress.global_step(), 1);
  EXPECT_THAT(received(0), ElementsAre(1, 3));
  EXPECT_EQ(fake_lane(0).received[1].step, 1);
  EXPECT_THAT(fake_lane(0).shares, ElementsAre(FakeLane::Share{1, 0}, FakeLane::Share{2, 0}));
}

TEST_F(InRounds, NothingOfARoundIsDoneBeforeItIsAppliedAndNoNextOneBegins) {
  fake_ps(0).script.stall("apply");
  const auto one = schedule();
  schedule_many(3);
  succeed(0, 1);
  succeed(1, 2);
  EXPECT_FALSE(done(one));
  EXPECT_TRUE(scheduler.any_torn());  // no cut now
  EXPECT_THAT(received(0), ElementsAre(1));
  EXPECT_EQ(gate.obstacle(*session.queue.front()), "waiting for the ps to apply round 1");
  fake_ps(0).script.let_go("apply");
  settle();
  EXPECT_TRUE(done(one));
  EXPECT_FALSE(scheduler.any_torn());
  EXPECT_THAT(received(0), ElementsAre(1, 3));
}

TEST_F(InRounds, ARoundThatIsShortWaitsUntilTheProgramDoes) {
  const auto one = schedule_and_send();
  succeed(0, 1);
  run_for(seconds(1));
  EXPECT_THAT(applied(), IsEmpty());
  EXPECT_THAT(policy->held()->waits_for, HasSubstr("or until the program waits"));
  ask();
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1"));
  EXPECT_TRUE(done(one));
}

TEST_F(InRounds, AMemberThatIsAskedForEndsAShortRoundToo) {
  const auto one = schedule_and_send();
  succeed(0, 1);
  const RemoteValue value(one, session.queue.board(), session.queue.waiting());
  EXPECT_FALSE(value.ready());
  send();
  EXPECT_TRUE(value.ready());
}

TEST_F(InRounds, AClosureOfAnotherFunctionBelongsToTheNextRound) {
  schedule();
  schedule_of(function_like("other"));
  schedule();
  send();
  EXPECT_THAT(received(1), IsEmpty());
  succeed(0, 1);
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1"));
  EXPECT_THAT(received(0), ElementsAre(1, 2));
}

TEST_F(InRounds, AClosureThatAssignsRunsAlone) {
  auto assign = function_like("assign");
  assign->assigns = true;
  schedule();
  schedule_of(assign);
  schedule();
  send();
  EXPECT_THAT(received(1), IsEmpty());
  succeed(0, 1);
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1"));
  EXPECT_THAT(received(0), ElementsAre(1, 2));
  EXPECT_THAT(fake_lane(0).shares.back(), (FakeLane::Share{0, 0}));  // applied as it comes
  EXPECT_THAT(received(1), IsEmpty());
  succeed(0, 2);
  EXPECT_THAT(received(0), ElementsAre(1, 2, 3));
}

TEST_F(InRounds, WhatUpdatesNothingGoesBy) {
  auto read = function_like("read");
  read->updates = false;
  schedule_of(read);
  schedule_many(2);
  EXPECT_THAT(members_of_the_round(), SizeIs(2));
}

TEST_F(InRounds, ALostWorkersMemberKeepsItsNumberWhereItRunsAgain) {
  schedule_many(3);
  watch();
  fake_worker(1).process.crash();
  run_for(seconds(1));
  EXPECT_THAT(received(0), ElementsAre(1, 2));
  EXPECT_THAT(fake_lane(0).shares, ElementsAre(FakeLane::Share{1, 0}, FakeLane::Share{1, 1}));
  succeed(0, 2);
  succeed(0, 1);
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1 2"));
}

TEST_F(InRounds, WhenAPsLacksTheSharesAllMembersRunAgainAsAnotherRound) {
  fake_ps(0).script.fail<AbortedError>("apply", "shares are gone");
  schedule_many(4);
  succeed(0, 1);
  succeed(1, 2);
  EXPECT_THAT(received(0), ElementsAre(1, 1));
  EXPECT_THAT(received(1), ElementsAre(2, 2));
  EXPECT_THAT(fake_lane(0).shares.back(), (FakeLane::Share{2, 0}));
  EXPECT_EQ(fake_lane(0).received[1].step, 0);
  EXPECT_TRUE(scheduler.any_torn());  // another shard may have applied it
  fake_ps(0).script.mend("apply");
  succeed(0, 1);
  succeed(1, 2);
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1 2", "apply 2: 1 2"));
  EXPECT_FALSE(scheduler.any_torn());
  EXPECT_EQ(progress.global_step(), 1);
}

TEST_F(InRounds, AnErrorOfTheSumIsTheMembers) {
  fake_ps(0).script.fail<ResourceExhaustedError>("apply", "no room for the rows");
  schedule_many(2);
  succeed(0, 1);
  succeed(1, 2);
  EXPECT_THAT(queue_error(), HasSubstr("no room for the rows"));
  EXPECT_FALSE(scheduler.any_torn());
  EXPECT_THAT(members_of_the_round(), IsEmpty());
}

TEST_F(InRounds, WithoutAMemberThatFailedTheOthersAreApplied) {
  const auto one = schedule();
  schedule_many(1);
  fake_lane(1).fail<InvalidArgumentError>(2, "no such row");
  settle();
  succeed(0, 1);
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1"));
  EXPECT_TRUE(done(one));
  EXPECT_THAT(queue_error(), HasSubstr("no such row"));
}

TEST_F(InRounds, NoRoundIsAppliedWhilePushesAreHeld) {
  schedule_many(2);
  auto held = scheduler.hold_pushes().start();
  settle();
  succeed(0, 1);
  succeed(1, 2);
  EXPECT_THAT(applied(), IsEmpty());
  scheduler.release_pushes();
  settle();
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1 2"));
}

struct WithABackup : InRounds {
  WithABackup() : InRounds(1) {}
};

TEST_F(WithABackup, TheSlowestIsLeftOutAndIsAMemberOfTheNextRoundWhichWaitsForIt) {
  for (int i = 0; i < 3; ++i) schedule();
  const auto four = schedule();
  send();
  succeed(0, 1);
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1"));
  EXPECT_THAT(received(0), ElementsAre(1, 2));  // lane 1 is still at work for round 1
  EXPECT_THAT(received(1), ElementsAre(2));
  EXPECT_EQ(fake_lane(0).received[1].step, 1);
  EXPECT_THAT(fake_lane(0).shares.back(), (FakeLane::Share{2, 0}));

  succeed(1, 2);  // late, and of no interest
  EXPECT_THAT(applied(), SizeIs(1));
  EXPECT_THAT(received(1), ElementsAre(2, 3));
  succeed(1, 3);
  EXPECT_THAT(applied(), SizeIs(1));  // 2 is not left out twice
  succeed(0, 2);
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1", "apply 2: 2 3"));
  EXPECT_EQ(progress.global_step(), 2);
  EXPECT_FALSE(done(four));
}

TEST_F(WithABackup, ALateAnswerIsNotTakenForThatOfTheNextRound) {
  schedule_many(2);
  succeed(0, 1);
  ASSERT_THAT(received(0), ElementsAre(1, 2));
  fake_lane(1).fail<AbortedError>(2, "the shard has moved on");
  settle();
  ask();
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1"));
  succeed(0, 2);
  ask();
  EXPECT_THAT(applied(), ElementsAre("apply 1: 1", "apply 2: 2"));
  EXPECT_EQ(queue_error(), "");
}

TEST_F(WithABackup, ALateLaneThatIsLostTakesNothingWithIt) {
  schedule_many(2);
  watch();
  succeed(0, 1);
  fake_worker(1).process.crash();
  run_for(seconds(1));
  EXPECT_THAT(received(0), ElementsAre(1, 2));
  succeed(0, 2);
  ask();
  EXPECT_TRUE(session.queue.done());
}

// ---- whole clusters ----

SimulatedClusterOptions cluster_of(int workers, Consistency consistency) {
  SimulatedClusterOptions options{.ps = 1, .workers = workers};
  options.strategy.consistency = consistency;
  return options;
}

Function step_of(Strategy& strategy, const Counters& counters) {
  return strategy.function([&counters] {
    counters.w.update({.kind = RuleKind::kSgd}, counters.w.read() * Array(0.5f), Array(0.1f));
  });
}

TEST(SynchronousRounds, AreAsManyAsTheStepsAndUpdateOnceEach) {
  SimulatedCluster cluster(cluster_of(4, Consistency::synchronous()));
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  Function add = cluster.strategy().function([&] {
    // 1 and not 4 is added by each round: a rule that counts how often it is applied would tell.
    counters.v.update({.kind = RuleKind::kSgd}, Array(-0.25f), Array(1.0f));
  });
  for (int i = 0; i < 40; ++i) coordinator.schedule(add);
  coordinator.join(kPatience);
  EXPECT_EQ(counters.value_of_v(), 10);
  EXPECT_EQ(coordinator.stats().global_step, 10);
  EXPECT_EQ(coordinator.stats().updates, 40u);
}

TEST(SynchronousRounds, RefuseAFunctionThatPushesTwice) {
  SimulatedCluster cluster(cluster_of(2, Consistency::synchronous()));
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  const UpdateRule sgd{.kind = RuleKind::kSgd};
  Function twice = cluster.strategy().function([&] {
    counters.v.update(sgd, Array(-1.0f), Array(1.0f));
    counters.w.update(sgd, counters.v.read(), Array(1.0f));
  });
  try {
    coordinator.schedule(twice);
    ADD_FAILURE() << "it was scheduled";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("pushes 2 times: under synchronous(0)"));
  }
}

TEST(SynchronousRounds, NeedAWorkerThatIsWaitedFor) {
  EXPECT_THROW(SimulatedCluster cluster(cluster_of(2, Consistency::synchronous(2))),
               InvalidArgumentError);
}

TEST(SynchronousRounds, NameTheMemberThatAllWaitFor) {
  SimulatedCluster cluster(cluster_of(2, Consistency::synchronous()));
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  Function train = step_of(cluster.strategy(), counters);
  for (int i = 0; i < 4; ++i) coordinator.schedule(train);
  coordinator.join(kPatience);
  cluster.network().partition("ps0", "worker1");
  for (int i = 0; i < 10; ++i) coordinator.schedule(train);
  cluster.run_for(seconds(2));
  const Json status = parse_json(coordinator.status_json(), "the status");
  EXPECT_EQ(status["consistency"], "synchronous(0)");
  EXPECT_THAT(status["held_by_bound"].get<std::string>(),
              HasSubstr("member 1, closure 6 on /job:worker/task:1 lane 0, has not answered"));
  cluster.network().heal_all();
  coordinator.join(kPatience);
}

// How long 400 updates take in virtual time with one of four workers four times slower.
Duration time_with_a_slow_worker(Consistency consistency) {
  SimulatedClusterOptions options = cluster_of(4, consistency);
  options.network.delay_min = options.network.delay_max = milliseconds(1);
  SimulatedCluster cluster(options);
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  Function train = step_of(cluster.strategy(), counters);
  cluster.network().slow("worker3", 4);
  const auto update = [&](int times) {
    for (int i = 0; i < times; ++i) coordinator.schedule(train);
    coordinator.join(kPatience);
  };
  update(40);  // all tasks are connected, and have the function
  const Duration from = cluster.reactor().now();
  update(400);
  EXPECT_EQ(coordinator.stats().updates, 440u);
  if (consistency.steps() > 0) {
    EXPECT_LT(coordinator.stats().staleness_max, 4 * consistency.steps());
  }
  return cluster.reactor().now() - from;
}

TEST(SynchronousRounds, ASlowWorkerCostsLessWithABackupWorkerOrABoundOnStaleness) {
  const Duration all = time_with_a_slow_worker(Consistency::synchronous());
  const Duration without_the_slowest = time_with_a_slow_worker(Consistency::synchronous(1));
  const Duration bounded = time_with_a_slow_worker(Consistency::bounded(4));
  // --gtest_output=xml has them: shares of the time of rounds that wait for all, in thousandths.
  RecordProperty("without_the_slowest", static_cast<int>(1000 * without_the_slowest / all));
  RecordProperty("bounded_by_4", static_cast<int>(1000 * bounded / all));
  EXPECT_LE(without_the_slowest, all / 2)
      << without_the_slowest.count() << " ns of " << all.count();
  EXPECT_LE(bounded, all * 6 / 10) << bounded.count() << " ns of " << all.count();
}

}  // namespace
}  // namespace cairn
