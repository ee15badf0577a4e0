#include <gtest/gtest.h>

#include "rpc/loop/sim_reactor.h"
#include "rpc/server/heartbeat.h"

namespace cairn::rpc {
namespace {

using namespace std::chrono_literals;

TEST(Heartbeat, FiveMissedInARowMeanDeath) {
  SimReactor reactor;
  int pings = 0;
  auto silence =
      reactor.wait(watch_heartbeat(reactor, "/job:ps/task:1", [&]() -> kj::Promise<void> {
        if (++pings <= 10) return kj::READY_NOW;
        return kj::NEVER_DONE;
      }));
  EXPECT_EQ(silence.who, "/job:ps/task:1");
  EXPECT_EQ(silence.silent_for, Duration(1s));
  EXPECT_EQ(reactor.now(), Duration(3s));
  EXPECT_EQ(silence.reason, "missed 5 heartbeats");
}

TEST(Heartbeat, ASlowAnswerIsStillAnAnswer) {
  SimReactor reactor;
  auto watch = watch_heartbeat(reactor, "ps", [&] { return reactor.sleep(900ms); }).start();
  auto ended = watch.then([](Silence&&) { ADD_FAILURE(); }).eagerlyEvaluate(nullptr);
  reactor.advance(1h);
}

TEST(Heartbeat, ALostConnectionIsDeathAtOnce) {
  SimReactor reactor;
  auto silence = reactor.wait(watch_heartbeat(reactor, "ps", [&]() -> kj::Promise<void> {
    return reactor.sleep(10ms).then(
        []() -> kj::Promise<void> { return to_kj(Code::kUnavailable, "reset"); });
  }));
  EXPECT_EQ(reactor.now(), Duration(10ms));
  EXPECT_NE(silence.reason.find("reset"), std::string::npos);
}

TEST(Heartbeat, AnErrorThatSomebodyRaisedIsASignOfLife) {
  SimReactor reactor;
  int pings = 0;
  auto watch = watch_heartbeat(reactor, "ps", [&]() -> kj::Promise<void> {
                 ++pings;
                 return to_kj(Code::kFailedPrecondition, "not now");
               }).start();
  auto ended = watch.then([](Silence&&) { ADD_FAILURE(); }).eagerlyEvaluate(nullptr);
  reactor.advance(10s);
  EXPECT_EQ(pings, 51);
}

}  // namespace
}  // namespace cairn::rpc
