#include "coordinator/engine/workers.h"

#include "tests/coordinator/engine/part_fixture.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct KeptWorkers : PartTest {
  explicit KeptWorkers(EngineOptions options = {}) : PartTest(std::move(options)) {}
  void begin(std::size_t workers, std::uint32_t threads = 1) {
    start(1, workers, threads);
    watch();
  }
};

TEST_F(KeptWorkers, ATaskOfAnotherRoleIsRefused) {
  begin(1);
  worker(0).address = fake_ps(0).process.address();
  try {
    ground.reactor.wait(workers.connect(&worker(0)));
    FAIL() << "it was taken for a worker";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/job:worker/task:0: at sim://ps0 there is /job:ps"));
  }
}

// Two names of one host are not known for one address until the task behind them says who it is.
TEST_F(KeptWorkers, AnotherTaskOfTheRoleIsRefusedByBothNames) {
  begin(2);
  worker(1).address = fake_worker(0).process.address();
  try {
    ground.reactor.wait(workers.connect(&worker(1)));
    FAIL() << "one process is two tasks";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("/job:worker/task:1: at sim://worker0 there is /job:worker/task:0"));
  }
}

TEST_F(KeptWorkers, EachConnectionOfALaneHasANewIncarnation) {
  begin(2);
  fake_worker(0).process.cut_off();  // the process stays the same
  run_for(seconds(1));
  EXPECT_THAT(fake_lane(0).incarnations, ElementsAre(1, 3));
  EXPECT_EQ(incarnation_of(lane(0)), 3u);
  EXPECT_EQ(incarnation_of(lane(1)), 2u);
}

TEST_F(KeptWorkers, ALaneIsToldToRepeatOnlyWhereTheProgramWantsIt) {
  begin(1);
  EXPECT_FALSE(fake_lane(0).deterministic);
  EXPECT_EQ(fake_lane(0).arithmetic, wire::Arithmetic::FLOAT32);
}

struct DeterministicWorkers : KeptWorkers {
  static EngineOptions options() {
    EngineOptions options;
    options.computing.deterministic = true;
    options.computing.products = Arithmetic::kMixedBfloat16;
    return options;
  }
  DeterministicWorkers() : KeptWorkers(options()) {}
};

TEST_F(DeterministicWorkers, EveryLaneIsToldToRepeatBitForBitAndInWhatToMultiply) {
  begin(1, 2);
  EXPECT_TRUE(fake_lane(0, 0).deterministic);
  EXPECT_TRUE(fake_lane(0, 1).deterministic);
  EXPECT_EQ(fake_lane(0, 1).arithmetic, wire::Arithmetic::MIXED_BFLOAT16);
}

TEST_F(KeptWorkers, ALostWorkersClosuresGoBackToTheFrontInTheirOrder) {
  begin(2);
  for (int i = 0; i < 4; ++i) schedule_and_send();
  ASSERT_THAT(received(0), ElementsAre(1, 3));
  for (std::uint64_t sequence : {2, 4}) succeed(1, sequence);
  {
    const TableLock::Hold hold(lock);  // nothing is sent
    for (int i = 0; i < 2; ++i) schedule();
    fake_worker(0).process.crash();
    run_for(milliseconds(100));
  }
  send();
  for (std::size_t answered = 2; answered < received(1).size(); ++answered)
    succeed(1, received(1)[answered]);
  EXPECT_THAT(received(1), ElementsAre(2, 4, 1, 3, 5, 6));
  EXPECT_EQ(session.queue.counts().retried, 2u);
}

TEST_F(KeptWorkers, ALostWorkersClosuresAreNotQueuedBeforeItsLanesAreFenced) {
  begin(2);
  schedule_and_send();
  ASSERT_THAT(received(0), ElementsAre(1));
  fake_ps(0).script.stall("fence");
  fake_ps(0).fences.clear();
  fake_worker(0).process.crash();
  run_for(seconds(5));
  send();
  EXPECT_THAT(fake_ps(0).fences, ElementsAre(FakePs::Fence{2, {2}}));
  EXPECT_THAT(received(1), IsEmpty());
  EXPECT_TRUE(scheduler.any_torn());
  fake_ps(0).script.let_go("fence");
  settle();
  send();
  EXPECT_THAT(received(1), ElementsAre(1));
}

TEST_F(KeptWorkers, AWorkerIsLostWithTheConnectionOfOneLane) {
  begin(1, 2);
  lane(1).client->connection().close();
  run_for(seconds(1));
  EXPECT_THAT(fake_lane(0, 0).incarnations, SizeIs(2));
  EXPECT_THAT(fake_lane(0, 1).incarnations, SizeIs(2));
  EXPECT_THAT(losses.reports(), SizeIs(1));
}

TEST_F(KeptWorkers, AWorkerThatAnswersNoHeartbeatIsLost) {
  begin(2);
  fake_worker(0).script.stall("ping");
  run_for(seconds(3));
  ASSERT_THAT(losses.reports(), SizeIs(::testing::Ge(1u)));
  EXPECT_EQ(losses.reports().front().task, "/job:worker/task:0");
  EXPECT_EQ(losses.reports().front().reason, "missed 5 heartbeats");
  EXPECT_TRUE(worker(1).ready);
}

TEST_F(KeptWorkers, AnAbsenceIsReportedFromTheLossToTheReturn) {
  begin(1);
  fake_worker(0).process.crash();
  run_for(seconds(2));
  ASSERT_THAT(losses.reports(), SizeIs(1));
  EXPECT_LT(losses.reports().front().back_after_seconds, 0);
  EXPECT_FALSE(worker(0).ready);
  fake_worker(0).start(new_process());
  run_for(seconds(1));
  EXPECT_TRUE(worker(0).ready);
  EXPECT_NEAR(losses.reports().front().back_after_seconds, 2.25, 0.3);
}

TEST_F(KeptWorkers, NothingIsSentBeforeAllLanesOfAWorkerAreConfigured) {
  begin(1, 2);
  fake_lane(0, 1).script.stall("configure");
  fake_worker(0).process.cut_off();
  run_for(seconds(1));
  ASSERT_THAT(fake_lane(0, 0).incarnations, SizeIs(2));
  schedule_and_send();
  EXPECT_THAT(received(0, 0), IsEmpty());
  fake_lane(0, 1).script.let_go("configure");
  settle();
  EXPECT_THAT(received(0, 0), ElementsAre(1));
}

TEST_F(KeptWorkers, ALaneThatDoesNotTakeItsConfigurationHasTheWorkerConnectedAnew) {
  begin(1, 2);
  fake_lane(0, 1).script.stall("configure");
  fake_worker(0).process.cut_off();
  run_for(seconds(11));
  EXPECT_THAT(worker(0).trouble, HasSubstr("configuring /job:worker/task:0"));
  EXPECT_THAT(fake_lane(0, 0).incarnations, SizeIs(3));
  fake_lane(0, 1).script.let_go("configure");
  settle();
  EXPECT_TRUE(worker(0).ready);
}

TEST_F(KeptWorkers, AWorkerThatComesBackWithFewerLanesGoesOnWithThose) {
  begin(1, 2);
  fake_worker(0).process.crash();
  run_for(milliseconds(100));
  fake_worker(0).start(new_process(), 1);
  run_for(seconds(1));
  ASSERT_TRUE(worker(0).ready);
  EXPECT_FALSE(lane(1).ready);
  EXPECT_EQ(incarnation_of(lane(1)), 0u);
  for (int i = 0; i < 2; ++i) schedule_and_send();
  EXPECT_THAT(received(0, 0), ElementsAre(1, 2));
}

// The datasets were dealt out to the lanes that were there at the start.
TEST_F(KeptWorkers, AWorkerThatComesBackWithMoreLanesUsesAsManyAsItHad) {
  begin(1, 1);
  fake_worker(0).process.crash();
  run_for(milliseconds(100));
  fake_worker(0).start(new_process(), 3);
  run_for(seconds(1));
  ASSERT_TRUE(worker(0).ready);
  EXPECT_THAT(worker(0).lanes, SizeIs(1));
  EXPECT_THAT(fake_lane(0, 1).incarnations, IsEmpty());
}

struct NoWorkerLeft : KeptWorkers {
  NoWorkerLeft() : KeptWorkers({.worker_wait = seconds(5)}) {
    begin(2);
    session.tasks.spawn("watch for workers", workers.watch_for_none());
    schedule();
  }
};

TEST_F(NoWorkerLeft, EndsTheProgramsWaitNamingEveryWorker) {
  for (std::size_t i : {0u, 1u}) fake_worker(i).process.crash();
  run_for(seconds(4));
  EXPECT_EQ(queue_error(), "");
  run_for(seconds(3));
  EXPECT_THAT(queue_error(), ::testing::AllOf(HasSubstr("no worker could be reached for 5 s"),
                                              HasSubstr("/job:worker/task:0 at sim://worker0"),
                                              HasSubstr("/job:worker/task:1 at sim://worker1")));
}

TEST_F(NoWorkerLeft, IsForgottenWhenOneComesBackInTime) {
  for (std::size_t i : {0u, 1u}) fake_worker(i).process.crash();
  run_for(seconds(4));
  fake_worker(1).start(new_process());
  run_for(seconds(10));
  EXPECT_EQ(queue_error(), "");
}

}  // namespace
}  // namespace cairn
