#include "coordinator/cluster/dialer.h"

#include "tests/coordinator/engine/part_fixture.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// One ps that is connected, and has not been part of this session yet.
struct Joining : PartTest {
  explicit Joining(EngineOptions options = {}) : PartTest(std::move(options)) {
    start(1, 0);
    session.started = false;
    ps(0).served = 0;
  }
  Dialer dialer{session};

  kj::Promise<void> begin() {
    auto joined = dialer.join(ps(0).control.get(), &ps(0)).start();
    settle();
    return joined;
  }
  // Its error; empty: it has joined.
  std::string join() {
    auto joined = begin();
    try {
      wait(joined);
    } catch (const FailedPreconditionError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Joining, ATaskForWhichNobodyIsAtWorkIsGranted) { EXPECT_EQ(join(), ""); }

// A coordinator that was just killed counts as at work until its heartbeats are missed.
TEST_F(Joining, AtTheStartAPredecessorThatFallsSilentIsWaitedFor) {
  fake_ps(0).owner.at_work = "pid 4711 on host ada";
  auto joined = begin();
  run_for(milliseconds(1200));
  EXPECT_FALSE(ended(joined));
  fake_ps(0).owner.at_work.clear();
  run_for(milliseconds(200));
  EXPECT_TRUE(ended(joined));
}

TEST_F(Joining, ACoordinatorThatStaysAtWorkIsNamedWithTheCure) {
  fake_ps(0).owner.at_work = "pid 4711 on host ada";
  const TimePoint began = ground.reactor.clock().now();
  EXPECT_THAT(join(), AllOf(HasSubstr("/job:ps/task:0 at sim://ps0 works for another coordinator"),
                            HasSubstr("pid 4711 on host ada"), HasSubstr("--take-over")));
  EXPECT_NEAR(session.seconds_since(began), 1.5, 0.2);  // twice the time of five heartbeats
}

TEST_F(Joining, OnceTheSessionHasStartedNoOtherCoordinatorIsWaitedFor) {
  session.started = true;
  fake_ps(0).owner.at_work = "pid 4711 on host ada";
  const TimePoint began = ground.reactor.clock().now();
  EXPECT_THAT(join(), HasSubstr("works for another coordinator"));
  EXPECT_NEAR(session.seconds_since(began), 0, 0.1);
}

TEST_F(Joining, AProcessThatForgotThisSessionForAnotherEndsTheProgram) {
  session.started = true;
  schedule();
  ps(0).served = ps(0).process;
  fake_ps(0).owner = {.at_work = "pid 4711 on host ada", .configured = 99};
  const std::string error = join();
  EXPECT_THAT(error, AllOf(HasSubstr("another coordinator has taken over this cluster"),
                           HasSubstr("pid 4711 on host ada")));
  EXPECT_EQ(queue_error(), error);
}

TEST_F(Joining, ANewProcessMayHaveBeenConfiguredForAnotherSession) {
  session.started = true;
  schedule();
  fake_ps(0).owner.configured = 99;
  EXPECT_EQ(join(), "");
  EXPECT_EQ(queue_error(), "");
}

TEST_F(Joining, ATaskThatDoesNotAnswerIsNotWaitedForForever) {
  fake_ps(0).process.silence();
  auto joined = begin();
  run_for(seconds(6));
  ASSERT_TRUE(ended(joined));
  EXPECT_THROW(wait(joined), DeadlineExceededError);
}

struct TakingOver : Joining {
  TakingOver() : Joining({.take_over = true}) {}
};

TEST_F(TakingOver, IsGrantedThoughAnotherIsAtWork) {
  fake_ps(0).owner.at_work = "pid 4711 on host ada";
  EXPECT_EQ(join(), "");
}

}  // namespace
}  // namespace cairn
