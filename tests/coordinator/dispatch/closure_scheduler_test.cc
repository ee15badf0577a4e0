#include "coordinator/dispatch/closure_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/dispatch/asynchronous_policy.h"
#include "core/graph/ops.h"
#include "tests/coordinator/cluster/fake_lane.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two workers of one lane each, that answer when the test says so, and one ps without shards.
struct Dispatching : ::testing::Test {
  SimulatedSession ground;
  Session& session = ground.session;
  FakeLane first{ground, "worker0"}, second{ground, "worker1"};
  ClusterMembers members;
  RowSources sources;
  TableLock lock{session.changed};
  ProgressBook progress;
  LossLedger losses{1};
  Recorder& recorder = ground.recorder;
  Announcer announcer{session, members, recorder, [this] { scheduler.pump(); }};
  ShardTables tables{session, members, sources, lock, recorder, [this] { scheduler.pump(); }};
  int saves_due = 0;
  Outcomes outcomes{session, members, progress, losses, recorder, [this] { ++saves_due; }};
  AsynchronousPolicy policy{
      {session, members, lock, progress, outcomes, recorder, [this] { scheduler.pump(); }}};
  DispatchGate gate{members, tables, lock, announcer, policy};
  ClosureScheduler scheduler{session,   members,  tables,   gate,    policy,
                             announcer, progress, outcomes, recorder};
  std::shared_ptr<RegisteredFunction> function = std::make_shared<RegisteredFunction>();

  Dispatching() {
    auto concrete = std::make_shared<ConcreteFunction>();
    function->name = "train";
    function->concrete = concrete;
    function->updates = function->uses_variables = true;
    add_ps(members);
    tables.begin({});
    ground.reactor.wait(announcer.tell(members.ps.front().get(), announcer.next()));
    for (FakeLane* fake : {&first, &second}) add_worker(*fake);
    session.started = true;
  }
  ~Dispatching() override {
    session.tasks.cancel_all();
    for (LaneState* lane : members.lanes) lane->tasks.reset();
  }

  void add_worker(FakeLane& fake) {
    auto worker = std::make_unique<Worker>();
    worker->name = str("/job:worker/task:", members.workers.size());
    worker->lanes.push_back(std::make_unique<LaneState>());
    LaneState& lane = *worker->lanes.back();
    lane.worker = worker.get();
    lane.number = members.lanes.size();
    members.lanes.push_back(&lane);
    members.workers.push_back(std::move(worker));
    connect(lane, fake);
  }
  void connect(LaneState& lane, FakeLane& fake) {
    lane.client = fake.connect();
    lane.incarnation = ++incarnations;
    scheduler.renew(lane);
    lane.tasks = std::make_unique<rpc::TaskGroup>();
    lane.worker->ready = lane.ready = true;
    scheduler.admit(lane);
  }

  std::shared_ptr<Closure> schedule() {
    auto closure = std::make_shared<Closure>();
    closure->function = function;
    session.queue.put(closure);
    return closure;
  }
  // On return the scheduled closures were sent, and have arrived.
  void send() {
    scheduler.pump();
    settle();
  }
  void settle() { ground.run_for(std::chrono::milliseconds(5)); }
  std::shared_ptr<Closure> schedule_and_send() {
    auto closure = schedule();
    send();
    return closure;
  }
  LaneState& lane(std::size_t i) { return *members.lanes[i]; }
  static std::vector<std::uint64_t> sequences(const FakeLane& fake) {
    std::vector<std::uint64_t> all;
    for (const auto& one : fake.received) all.push_back(one.sequence);
    return all;
  }
  std::uint64_t incarnations = 0;
};

TEST_F(Dispatching, SendsNothingBeforeTheSessionHasStarted) {
  session.started = false;
  schedule_and_send();
  EXPECT_THAT(first.received, IsEmpty());
  session.started = true;
  send();
  EXPECT_THAT(sequences(first), ElementsAre(1));
}

TEST_F(Dispatching, PrefersTheLaneWithTheFewestClosures) {
  for (int i = 0; i < 3; ++i) schedule_and_send();
  EXPECT_THAT(sequences(first), ElementsAre(1, 3));
  EXPECT_THAT(sequences(second), ElementsAre(2));
  second.succeed(2);
  settle();
  schedule_and_send();
  schedule_and_send();
  EXPECT_THAT(sequences(first), ElementsAre(1, 3));
  EXPECT_THAT(sequences(second), ElementsAre(2, 4, 5));
}

TEST_F(Dispatching, NeighboursGoTogetherInOneMessage) {
  schedule_and_send();
  schedule_and_send();
  first.succeed(1);
  settle();
  second.succeed(2);
  settle();
  for (int i = 0; i < 4; ++i) schedule();
  send();
  EXPECT_THAT(sequences(first), ElementsAre(1, 3, 4, 5));
  EXPECT_THAT(sequences(second), ElementsAre(2, 6));
  EXPECT_THAT(first.messages, ElementsAre(1, 3));
}

TEST_F(Dispatching, PreparesALaneOnceForEachConnection) {
  schedule_and_send();
  EXPECT_THAT(first.prepared, ElementsAre("layout", "function 0"));
  schedule_and_send();
  schedule_and_send();
  EXPECT_THAT(first.prepared, SizeIs(2));

  std::vector<std::shared_ptr<Closure>> interrupted;
  scheduler.abandon(lane(0), interrupted);
  connect(lane(0), first);
  schedule_and_send();
  EXPECT_THAT(first.prepared, ElementsAre("layout", "function 0", "layout", "function 0"));
}

TEST_F(Dispatching, GivesStepsInTheOrderOfTheQueue) {
  for (int i = 0; i < 4; ++i) schedule();
  send();
  for (const FakeLane* fake : {&first, &second})
    for (const auto& one : fake->received)
      EXPECT_EQ(one.step, static_cast<std::int64_t>(one.sequence) - 1);
}

TEST_F(Dispatching, CommitsTheStepOfAClosureThatSucceeds) {
  auto closure = schedule_and_send();
  EXPECT_EQ(progress.global_step(), 0);
  first.succeed(1);
  settle();
  EXPECT_EQ(closure->outcome, Closure::Outcome::kReady);
  EXPECT_EQ(progress.global_step(), 1);
  EXPECT_EQ(session.stats.read().updates, 1u);
}

TEST_F(Dispatching, SaysForEachUpdateThatASaveIsDueUntilItBegins) {
  progress.save_every(2);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    schedule_and_send();
    (sequences(first).back() == i ? first : second).succeed(i);
    settle();
    if (i == 3) progress.save_begins();
  }
  EXPECT_EQ(saves_due, 3);  // at 2 and at 3, and again at 4
}

TEST_F(Dispatching, AnAbortedClosureRunsAgainAsTheSameStep) {
  schedule_and_send();
  first.fail<AbortedError>(1, "the shard is another one");
  settle();
  EXPECT_THAT(second.received, ElementsAre(first.received.front()));
  EXPECT_TRUE(scheduler.any_torn());
  second.succeed(1);
  settle();
  EXPECT_FALSE(scheduler.any_torn());
  EXPECT_EQ(progress.global_step(), 1);
}

TEST_F(Dispatching, AClosureThatMetALossWaitsALittleAndIsTornMeanwhile) {
  schedule_and_send();
  first.fail<UnavailableError>(1, "a ps is gone");
  settle();
  EXPECT_THAT(second.received, IsEmpty());
  EXPECT_TRUE(scheduler.any_torn());
  ground.run_for(std::chrono::milliseconds(30));
  send();
  EXPECT_THAT(second.received, ElementsAre(first.received.front()));
}

TEST_F(Dispatching, AnErrorOfTheProgramIsTheClosuresEnd) {
  auto closure = schedule_and_send();
  first.fail<InvalidArgumentError>(1, "no such row");
  settle();
  EXPECT_EQ(closure->outcome, Closure::Outcome::kFailed);
  EXPECT_FALSE(scheduler.any_torn());
  EXPECT_THROW(session.queue.join(Duration(0)), InvalidArgumentError);
}

TEST_F(Dispatching, ElementsAreKeptOverARetryAndSpentByAFailure) {
  function->elements = {2};
  auto data = progress.add_dataset("data", std::vector<std::vector<std::byte>>(1), {}, true);
  const auto schedule_one = [&] {
    auto closure = std::make_shared<Closure>();
    closure->function = function;
    closure->datasets = {data};
    session.queue.put(closure);
    send();
  };
  schedule_one();
  first.fail<AbortedError>(1, "once more");
  settle();
  ASSERT_THAT(second.received, SizeIs(1));
  EXPECT_THAT(second.received.front().ordinals, ElementsAre(0));

  second.fail<InvalidArgumentError>(1, "no such row");
  settle();
  EXPECT_THAT(progress.positions().front().open, IsEmpty());
  EXPECT_THROW(session.queue.join(Duration(0)), InvalidArgumentError);
  schedule_one();
  const auto& next = first.received.size() > 1 ? first.received.back() : second.received.back();
  EXPECT_THAT(next.ordinals, ElementsAre(2));
}

TEST_F(Dispatching, ALostLaneHandsOutWhatItHadInOrder) {
  for (int i = 0; i < 5; ++i) schedule_and_send();
  const auto had = sequences(first);
  ASSERT_THAT(had, ElementsAre(1, 3, 5));
  std::vector<std::shared_ptr<Closure>> interrupted;
  scheduler.abandon(lane(0), interrupted);
  ASSERT_THAT(interrupted, SizeIs(3));
  for (std::size_t i = 0; i < had.size(); ++i) EXPECT_EQ(interrupted[i]->sequence, had[i]);
  EXPECT_TRUE(scheduler.any_torn());
  EXPECT_EQ(lane(0).incarnation, 0u);

  for (std::uint64_t sequence : {2, 4}) second.succeed(sequence);
  settle();
  for (auto& closure : interrupted) session.queue.put_back(std::move(closure));
  send();
  EXPECT_THAT(sequences(second), ElementsAre(2, 4, 1, 3, 5));
  EXPECT_EQ(second.received[2].step, 0);
}

// Their calls fail a few turns of the loop before the connection counts as ended.
TEST_F(Dispatching, ClosuresOfAnEndedConnectionAreLeftToTheLossOfTheLane) {
  schedule_and_send();
  ground.network.crash("worker0");
  settle();
  std::vector<std::shared_ptr<Closure>> interrupted;
  scheduler.abandon(lane(0), interrupted);
  EXPECT_THAT(interrupted, SizeIs(1));
  ground.run_for(std::chrono::seconds(1));
  send();
  EXPECT_THAT(second.received, IsEmpty());  // not before the lane is fenced
}

TEST_F(Dispatching, AnswersToAClosureThatTheLaneDoesNotHaveEndItsConnection) {
  schedule_and_send();
  first.succeed(77);
  ground.reactor.wait(lane(0).client->connection().on_disconnect());
  EXPECT_FALSE(lane(0).client->connection().connected());
  std::vector<std::shared_ptr<Closure>> interrupted;
  scheduler.abandon(lane(0), interrupted);  // as Workers does at once
  EXPECT_THAT(interrupted, SizeIs(1));
}

TEST_F(Dispatching, HoldsEveryLaneAndKeepsOutThoseThatCome) {
  schedule_and_send();
  ground.reactor.wait(scheduler.hold_pushes());
  EXPECT_TRUE(first.holds_pushes);
  EXPECT_TRUE(second.holds_pushes);

  FakeLane third(ground, "worker2");
  add_worker(third);
  schedule_and_send();
  schedule_and_send();
  EXPECT_THAT(third.received, IsEmpty());

  scheduler.release_pushes();
  settle();
  EXPECT_FALSE(first.holds_pushes);
  schedule_and_send();
  EXPECT_THAT(third.received, SizeIs(1));
  lane(2).tasks.reset();
  lane(2).client.reset();
}

TEST_F(Dispatching, AClosureThatAShardHasAppliedIsCommittedOnceItsResultIsHere) {
  schedule_and_send();
  AppliedClosures applied;
  EXPECT_TRUE(scheduler.all_committed(applied));
  applied.ranges = {{1, 2}};
  EXPECT_FALSE(scheduler.all_committed(applied));
  first.succeed(1);
  settle();
  EXPECT_TRUE(scheduler.all_committed(applied));
}

struct Gate : Dispatching {};

TEST_F(Gate, HoldsClosuresBackWhileTablesAreTalkedAbout) {
  auto closure = schedule();
  {
    const TableLock::Hold hold(lock);
    send();
    EXPECT_THAT(first.received, IsEmpty());
    EXPECT_EQ(gate.obstacle(*closure), "waiting for tables to be made or restored");
  }
  send();
  EXPECT_THAT(first.received, SizeIs(1));
  EXPECT_EQ(gate.obstacle(*closure), "");
}

TEST_F(Gate, HoldsClosuresBackWhileAPsIsAway) {
  Ps& ps = *members.ps.front();
  ps.ready = false;
  ps.trouble = "missed 5 heartbeats";
  auto closure = schedule_and_send();
  EXPECT_THAT(first.received, IsEmpty());
  EXPECT_EQ(gate.obstacle(*closure),
            "waiting for /job:ps/task:0, which is away (missed 5 heartbeats)");
}

TEST_F(Gate, LetsAClosureWithoutVariablesPass) {
  members.ps.front()->ready = false;
  function->updates = function->uses_variables = false;
  auto closure = schedule_and_send();
  EXPECT_THAT(first.received, SizeIs(1));
  EXPECT_EQ(gate.obstacle(*closure), "");
}

TEST_F(Gate, HasNewTablesMadeForTheClosureThatNeedsThem) {
  members.ps.front()->ready = false;  // no ps makes them
  auto closure = std::make_shared<Closure>();
  closure->function = function;
  closure->oldest_layout = tables.synced_version() + 1;
  session.queue.put(closure);
  send();
  EXPECT_THAT(first.received, IsEmpty());
  EXPECT_EQ(gate.obstacle(*closure).substr(0, 28), "waiting for /job:ps/task:0, ");
  members.ps.front()->ready = true;
  EXPECT_EQ(gate.obstacle(*closure), "waiting for the ps to make its tables");
}

}  // namespace
}  // namespace cairn
