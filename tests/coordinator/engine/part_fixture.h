// The parts of an engine, wired as Engine wires them, with fake tasks at the other ends of their
// connections. A test of one part adds that part, and looks at what the tasks are asked.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coordinator/engine/ps_group.h"
#include "coordinator/engine/workers.h"
#include "core/graph/ops.h"
#include "tests/coordinator/cluster/part_fakes.h"

namespace cairn {

// The incarnation of a lane on the engine's side, to compare with its fake's.
inline std::uint64_t incarnation_of(const LaneState& lane) { return lane.incarnation.number; }

// A fixture with parts of its own calls stop() in its destructor, as Engine's does.
struct PartTest : ::testing::Test {
  explicit PartTest(EngineOptions options = {}) : ground(std::move(options)) {
    auto concrete = std::make_shared<ConcreteFunction>();
    function->name = "train";
    function->concrete = concrete;
    function->updates = function->uses_variables = true;
  }
  ~PartTest() override { stop(); }
  void stop() {
    session.tasks.cancel_all();
    for (LaneState* lane : members.lanes) lane->tasks.reset();
  }

  // ---- the cluster: "ps0", "worker0", ...; all connected, and not watched yet ----
  void start(std::size_t ps, std::size_t workers, std::uint32_t threads = 1) {
    while (members.ps.size() < ps) add_ps(threads);
    while (members.workers.size() < workers) add_worker(threads);
    for (auto& one : members.ps) ground.reactor.wait(ps_group.connect(one.get()));
    for (auto& one : members.workers) ground.reactor.wait(this->workers.connect(one.get()));
    losses = LossLedger(members.ps.size());
    number_members();
    for (auto& one : members.ps) ground.reactor.wait(ps_group.attach_in_time(one.get()));
    for (auto& one : members.workers) ground.reactor.wait(this->workers.configure(one.get()));
    session.started = true;
  }
  // From now on members that are lost are brought back.
  void watch() {
    for (auto& one : members.ps) session.tasks.spawn(one->name, ps_group.keep(one.get()));
    for (auto& one : members.ps) session.tasks.spawn(one->name, ps_group.serve(one.get()));
    for (auto& one : members.workers) session.tasks.spawn(one->name, workers.keep(one.get()));
  }
  // A scalar on each of the first shards.
  void make_variables(const std::vector<std::string>& names) {
    for (const std::string& name : names) tables.registry().create({.name = name, .shape = {}});
    tables.sync();
    settle();
    ASSERT_TRUE(tables.have(tables.registry().version()));
  }

  Ps& ps(std::size_t i) { return *members.ps.at(i); }
  Worker& worker(std::size_t i) { return *members.workers.at(i); }
  LaneState& lane(std::size_t i) { return *members.lanes.at(i); }
  FakePs& fake_ps(std::size_t i) { return *fake_ps_.at(i); }
  FakeWorker& fake_worker(std::size_t i) { return *fake_workers_.at(i); }
  FakeLane& fake_lane(std::size_t worker, std::size_t i = 0) { return fake_worker(worker).lane(i); }
  // The incarnation of a process that has not been there yet.
  std::uint64_t new_process() { return ++processes_; }

  // ---- closures and time ----
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
  std::shared_ptr<Closure> schedule_and_send() {
    auto closure = schedule();
    send();
    return closure;
  }
  void succeed(std::size_t worker, std::uint64_t sequence) {
    fake_lane(worker).succeed(sequence);
    settle();
  }
  std::vector<std::uint64_t> received(std::size_t worker, std::size_t lane = 0) {
    std::vector<std::uint64_t> all;
    for (const auto& one : fake_lane(worker, lane).received) all.push_back(one.sequence);
    return all;
  }
  void settle() { ground.run_for(std::chrono::milliseconds(10)); }
  void run_for(Duration time) { ground.run_for(time); }
  template <typename T>
  bool ended(kj::Promise<T>& promise) {
    return promise.poll(ground.reactor.scope());
  }
  // Waits for the promise: its result, or its error.
  template <typename T>
  T wait(kj::Promise<T>& promise) {
    return ground.reactor.wait(kj::mv(promise));
  }
  // The error that join() raises; empty: none.
  std::string queue_error() {
    try {
      session.queue.join(Duration(0));
    } catch (const DeadlineExceededError&) {
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  SimulatedSession ground;
  Session& session = ground.session;
  ClusterMembers members;
  RowSources sources;
  TableLock lock{session.changed};
  ProgressBook progress;
  LossLedger losses;
  Announcer announcer{session, members, ground.recorder, [this] { scheduler.pump(); }};
  ShardTables tables{session, members,         sources,
                     lock,    ground.recorder, [this] { scheduler.pump(); }};
  LaneFence fence{session, members};
  Outcomes outcomes{session, members, progress, losses, ground.recorder, [] {}};
  std::unique_ptr<ConsistencyPolicy> policy = make_policy(
      {session, members, lock, progress, outcomes, ground.recorder, [this] { scheduler.pump(); }});
  DispatchGate gate{members, tables, lock, announcer, *policy};
  ClosureScheduler scheduler{session,   members,  tables,   gate,           *policy,
                             announcer, progress, outcomes, ground.recorder};
  Workers workers{session, members, scheduler, *policy, fence, losses};
  PsGroup ps_group{session,         members,
                   tables,          lock,
                   sources,         fence,
                   announcer,       losses,
                   ground.recorder, [this] { scheduler.pump(); }};
  std::shared_ptr<RegisteredFunction> function = std::make_shared<RegisteredFunction>();

 private:
  void add_ps(std::uint32_t shards) {
    const std::size_t i = members.ps.size();
    fake_ps_.push_back(std::make_unique<FakePs>(ground, str("ps", i)));
    fake_ps_.back()->start(new_process(), shards);
    members.ps.push_back(std::make_unique<Ps>());
    Ps& ps = *members.ps.back();
    ps.index = static_cast<std::uint32_t>(i);
    ps.address = fake_ps_.back()->process.address();
    ps.name = str("/job:ps/task:", i);
  }
  void add_worker(std::size_t lanes) {
    const std::size_t i = members.workers.size();
    fake_workers_.push_back(std::make_unique<FakeWorker>(ground, str("worker", i)));
    fake_workers_.back()->start(new_process(), lanes);
    members.workers.push_back(std::make_unique<Worker>());
    Worker& worker = *members.workers.back();
    worker.index = static_cast<std::uint32_t>(i);
    worker.address = fake_workers_.back()->process.address();
    worker.name = str("/job:worker/task:", i);
  }
  void number_members() {
    tables.begin(members.place_shards(session.options.recovery.replicas));
    for (auto& worker : members.workers)
      for (auto& lane : worker->lanes) {
        lane->number = members.lanes.size();
        members.lanes.push_back(lane.get());
      }
  }

  std::uint64_t processes_ = 100;
  std::vector<std::unique_ptr<FakePs>> fake_ps_;
  std::vector<std::unique_ptr<FakeWorker>> fake_workers_;
};

}  // namespace cairn
