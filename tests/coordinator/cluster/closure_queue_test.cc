#include "coordinator/cluster/closure_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "coordinator/cluster/engine_options.h"

namespace cairn {
namespace {

std::shared_ptr<Closure> closure() { return std::make_shared<Closure>(); }
std::exception_ptr error() { return std::make_exception_ptr(InvalidArgumentError("no")); }

struct Queue : ::testing::Test {
  ClosureQueue queue{2, make_thread_waiting(), [] {}};
  std::shared_ptr<Closure> put() {
    auto made = closure();
    queue.put(made);
    return made;
  }
};

TEST_F(Queue, IsFirstInFirstOut) {
  auto a = put(), b = put();
  EXPECT_EQ(queue.pop(), a);
  EXPECT_EQ(queue.pop(), b);
  EXPECT_EQ(queue.pop(), nullptr);
}

TEST_F(Queue, PutWaitsWhileItIsFull) {
  put();
  put();
  std::thread user([&] { put(); });
  auto first = queue.pop();
  user.join();  // it got in
  EXPECT_EQ(queue.counts().queued, 2u);
  queue.finish(*first, {});
}

TEST_F(Queue, AClosurePutBackComesBeforeLaterOnes) {
  auto a = put(), b = put();
  auto first = queue.pop();
  queue.put_back(first);
  EXPECT_EQ(queue.pop(), a);
  EXPECT_EQ(queue.pop(), b);
  EXPECT_EQ(queue.counts().retried, 1u);
}

TEST_F(Queue, TheLowWatermarkIsTheOldestUnsettledClosure) {
  auto a = put(), b = put();
  queue.pop();
  queue.pop();
  queue.finish(*b, {});
  EXPECT_EQ(queue.low_watermark(), a->sequence);
  queue.finish(*a, {});
  EXPECT_EQ(queue.low_watermark(), b->sequence + 1);
}

TEST_F(Queue, AnErrorIsRaisedOnceAndCancelsWhatIsQueued) {
  auto a = put(), b = put();
  queue.pop();
  queue.fail(*a, error());
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_EQ(b->outcome, Closure::Outcome::kFailed);
  EXPECT_THROW(queue.join(kForever), InvalidArgumentError);
  queue.join(kForever);
  EXPECT_TRUE(queue.done());
}

TEST_F(Queue, ScheduleAfterAnErrorRaisesItAndDoesNotQueue) {
  auto a = put();
  queue.pop();
  queue.fail(*a, error());
  EXPECT_THROW(put(), InvalidArgumentError);
  EXPECT_EQ(queue.counts().queued, 0u);
}

TEST_F(Queue, APutThatWaitsRaisesTheErrorOfAClosure) {
  auto a = put();
  queue.pop();
  put();
  put();
  std::promise<void> raised;
  std::thread user([&] {
    try {
      put();
    } catch (...) {
      raised.set_exception(std::current_exception());
    }
  });
  queue.fail(*a, error());
  EXPECT_THROW(raised.get_future().get(), InvalidArgumentError);
  user.join();
  EXPECT_EQ(queue.counts().queued, 0u);
}

TEST_F(Queue, JoinSaysWhatIsLeftWhenItsTimeIsUp) {
  put();
  EXPECT_THROW(queue.join(Duration(0)), DeadlineExceededError);
}

TEST(QueueBound, IsTheReferencesUnlessToldOtherwise) {
  EXPECT_EQ(ClosureQueue::kCapacity, 262'144u);
  EXPECT_EQ(EngineOptions().queue_capacity, ClosureQueue::kCapacity);
}

TEST(QueueBound, ZeroMeansNone) {
  ClosureQueue queue(0, make_thread_waiting(), [] {});
  for (int i = 0; i < 1000; ++i) queue.put(closure());
  EXPECT_EQ(queue.counts().queued, 1000u);
}

// Lets no time pass: what is not so yet will not be so in time.
class NoPatience final : public Waiting {
 public:
  bool wait(std::unique_lock<std::mutex>&, std::condition_variable&, Duration limit,
            const std::function<bool()>& ready) override {
    limits.push_back(limit);
    return ready();
  }
  std::vector<Duration> limits;
};

// Two closures at work, of which the first has failed.
struct Failed : ::testing::Test {
  std::shared_ptr<NoPatience> waiting = std::make_shared<NoPatience>();
  ClosureQueue queue{8, waiting, [] {}};
  std::shared_ptr<Closure> first = closure(), second = closure();
  Failed() {
    queue.put(first);
    queue.put(second);
    queue.pop();
    queue.pop();
    queue.fail(*first, error());
  }
};

TEST_F(Failed, TheErrorIsRaisedAfterTenSecondsAtMostWhateverRuns) {
  EXPECT_THROW(queue.join(kForever), InvalidArgumentError);
  EXPECT_EQ(waiting->limits.back(), std::chrono::seconds(10));
  EXPECT_FALSE(queue.done());  // the other one still runs, and does not hold up the program
  queue.put(closure());
  EXPECT_NE(queue.pop(), nullptr);
}

TEST_F(Failed, ALaterErrorOfTheSameGenerationStaysWithItsClosure) {
  queue.fail(*second, std::make_exception_ptr(OutOfRangeError("later")));
  EXPECT_THROW(queue.join(kForever), InvalidArgumentError);
  queue.join(kForever);
  EXPECT_THROW(std::rethrow_exception(second->error), OutOfRangeError);
}

TEST_F(Failed, AnErrorOfAnEarlierGenerationEndsNoOther) {
  EXPECT_THROW(queue.join(kForever), InvalidArgumentError);
  auto next = closure();
  queue.put(next);
  queue.fail(*second, std::make_exception_ptr(OutOfRangeError("late")));
  EXPECT_EQ(queue.pop(), next);
  queue.finish(*next, {});
  EXPECT_TRUE(queue.done());
}

TEST_F(Failed, AClosureThatComesBackIsCancelledAndItsElementsAreSpent) {
  queue.put_back(second);
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_THROW(std::rethrow_exception(second->error), CancelledError);
  EXPECT_EQ(queue.take_cancelled(), std::vector{second});
  EXPECT_TRUE(queue.take_cancelled().empty());
}

TEST_F(Failed, AClosureThatComesBackAfterTheErrorWasRaisedIsCancelledToo) {
  EXPECT_THROW(queue.join(kForever), InvalidArgumentError);
  queue.put_back(second);
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_TRUE(queue.done());
}

TEST_F(Failed, AHalfPushedClosureIsRunToItsEnd) {
  second->maybe_torn = true;
  queue.put_back(second);
  EXPECT_EQ(queue.pop(), second);
  queue.finish(*second, {});
  EXPECT_EQ(second->outcome, Closure::Outcome::kReady);
  EXPECT_THROW(queue.join(kForever), InvalidArgumentError);
  EXPECT_TRUE(queue.done());
}

TEST_F(Failed, NothingIsCompletedInAClusterThatIsGone) {
  second->maybe_torn = true;
  queue.put_back(second);
  queue.fail_all(std::make_exception_ptr(UnavailableError("no ps")));
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_THROW(queue.join(kForever), InvalidArgumentError);  // still the first
  queue.join(kForever);
}

}  // namespace
}  // namespace cairn
