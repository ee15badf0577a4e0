#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "rpc/loop/reactor.h"
#include "rpc/loop/reactor_thread.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/loop/task_group.h"

namespace cairn::rpc {
namespace {

using namespace std::chrono_literals;

Task<int> answer(Reactor& reactor) {
  co_await reactor.sleep(1ms);
  co_return 42;
}
Task<void> forever() { co_await kj::Promise<void>(kj::NEVER_DONE); }
Task<int> failing(Reactor& reactor) {
  co_await reactor.yield();
  throw NotFoundError("no such table");
}

TEST(Reactor, WaitReturnsTheValueAndRethrowsTheClass) {
  auto reactor = make_reactor();
  EXPECT_EQ(reactor->wait(answer(*reactor)), 42);
  EXPECT_THROW(reactor->wait(failing(*reactor)), NotFoundError);
}

TEST(Reactor, ADeadlineNamesWhatWasLateAndCancelsIt) {
  SimReactor reactor;
  try {
    reactor.wait(reactor.with_deadline(forever(), 30s, "reading the manifest"));
    FAIL();
  } catch (const DeadlineExceededError& error) {
    EXPECT_STREQ(error.what(), "reading the manifest took longer than 30000 ms");
  }
  EXPECT_EQ(reactor.now(), Duration(30s));
}

TEST(Reactor, ADeadlineInTimeGivesTheValue) {
  SimReactor reactor;
  EXPECT_EQ(reactor.wait(reactor.with_deadline(answer(reactor), 1s, "an answer")), 42);
  EXPECT_EQ(reactor.now(), Duration(1ms));
}

// Such as after a step that computed for longer than its push may take.
TEST(Reactor, ADelayCountsFromThePresentHoweverLongTheLoopWasBusy) {
  auto reactor = make_reactor();
  reactor->wait(reactor->sleep(0ms));
  const Duration busy = reactor->now() + 20ms;
  while (reactor->now() < busy) {
  }
  reactor->wait(reactor->sleep(10ms));
  EXPECT_GE(reactor->now(), busy + 10ms);
}

TEST(Reactor, KeptAwakeItMakesNoTimerLate) {
  auto reactor = make_reactor();
  reactor->mailbox()->stay_awake(1h);
  EXPECT_EQ(reactor->wait(reactor->with_deadline(answer(*reactor), 10s, "the timer")), 42);
}

TEST(Reactor, WaitingCountsAsIdleAndWorkDoesNot) {
  auto reactor = make_reactor();
  reactor->wait(answer(*reactor));
  const Duration idle = reactor->idle();
  EXPECT_GT(idle, 500us);
  reactor->post([&] {
    for (const Duration until = reactor->now() + 20ms; reactor->now() < until;) {
    }
  });
  reactor->wait(reactor->yield());
  EXPECT_LT(reactor->idle() - idle, 10ms);
}

TEST(Reactor, PostsFromOtherThreadsRunInOrder) {
  auto reactor = make_reactor();
  std::vector<int> order;
  auto mailbox = reactor->mailbox();
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) mailbox->post([&order, i] { order.push_back(i); });
    mailbox->post([&] { reactor->stop(); });
  });
  reactor->run();
  other.join();
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Reactor, PostedWorkThatThrowsDoesNotEndTheLoop) {
  auto reactor = make_reactor();
  reactor->post([] { throw InternalError("a test throws this"); });
  reactor->post([&] { reactor->stop(); });
  reactor->run();
}

TEST(Reactor, AStopBeforeTheRunIsKept) {
  auto reactor = make_reactor();
  reactor->stop();
  reactor->wait(reactor->yield());
  reactor->run();
}

TEST(Reactor, AMailboxOutlivesItsReactor) {
  auto reactor = make_reactor();
  auto mailbox = reactor->mailbox();
  reactor.reset();
  EXPECT_FALSE(mailbox->post([] { FAIL(); }));
}

TEST(Reactor, KeptThingsEndLastInFirstOutWhileTheLoopStands) {
  std::vector<int> ended;
  auto reactor = make_reactor();
  for (int i : {1, 2}) {
    reactor->keep(std::shared_ptr<void>(nullptr, [&ended, i](void*) {
      kj::evalLater([] {}).detach([](kj::Exception&&) {});  // needs a loop
      ended.push_back(i);
    }));
  }
  reactor.reset();
  EXPECT_EQ(ended, (std::vector<int>{2, 1}));
}

TEST(Reactor, SignalsReachTheHandlerOnTheLoop) {
  auto reactor = make_reactor();
  int seen = 0;
  auto watch = on_signal(*reactor, {SIGUSR1}, [&](int signal) {
    seen = signal;
    reactor->stop();
  });
  ::raise(SIGUSR1);
  reactor->run();
  EXPECT_EQ(seen, SIGUSR1);
}

TEST(ReactorThread, RunsWorkThereAndReportsItsErrors) {
  ReactorThread thread("shard-0");
  std::thread::id there;
  thread.run([&] { there = std::this_thread::get_id(); });
  EXPECT_NE(there, std::this_thread::get_id());
  EXPECT_THROW(thread.run([] { throw NotFoundError("x"); }), NotFoundError);
  thread.stop();
  EXPECT_THROW(thread.run([] {}), UnavailableError);
}

TEST(TaskGroup, ReportsWhatFailedByNameAndStaysQuietOnCancelled) {
  auto reactor = make_reactor();
  std::vector<std::string> reports;
  TaskGroup group([&](const std::string& what, const ErrorParts& error) {
    reports.push_back(what + "/" + error.message);
  });
  group.spawn("the save", [](Reactor& r) -> Task<void> {
    co_await r.yield();
    throw DataLossError("torn");
  }(*reactor));
  group.spawn("the quiet one", [](Reactor& r) -> Task<void> {
    co_await r.yield();
    throw CancelledError("x");
  }(*reactor));
  reactor->wait(group.on_empty());
  EXPECT_EQ(reports, std::vector<std::string>{"the save/torn"});
}

struct CountsItsEnd {
  int& ended;
  ~CountsItsEnd() { ++ended; }
};
Task<void> counted(int& ended) {
  CountsItsEnd end{ended};
  co_await kj::Promise<void>(kj::NEVER_DONE);
}

TEST(TaskGroup, DestructionCancelsWhatRuns) {
  auto reactor = make_reactor();
  int ended = 0;
  {
    TaskGroup group;
    for (int i = 0; i < 3; ++i) group.spawn("waits", counted(ended));
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 3);
}

TEST(SimReactor, TimeJumpsToTheNextEventAndEqualTimesKeepTheirOrder) {
  SimReactor reactor;
  std::string order;
  reactor.schedule(2h, [&] { order += 'c'; });
  reactor.schedule(1h, [&] { order += 'a'; });
  reactor.schedule(1h, [&] { order += 'b'; });
  reactor.advance(3h);
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(reactor.now(), Duration(3h));
}

TEST(SimReactor, TimeStandsStillWhileAnythingIsRunnable) {
  SimReactor reactor;
  Duration seen{-1};
  reactor.post([&] { seen = reactor.now(); });
  reactor.run_ready();
  EXPECT_EQ(seen, Duration(0));
  EXPECT_EQ(reactor.clock().now(), TimePoint(Duration(0)));
}

TEST(SimReactor, WaitingForNothingIsAnErrorNotAHang) {
  SimReactor reactor;
  EXPECT_THROW(reactor.wait(forever()), InternalError);
}

}  // namespace
}  // namespace cairn::rpc
