#include "worker/lane/admission.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "rpc/loop/sim_reactor.h"

namespace cairn::worker {
namespace {

class PushGateTest : public testing::Test {
 protected:
  void pass(const void* who) {
    waiting.push_back(gate.pass(who).then([this] { ++passes; }).eagerlyEvaluate(nullptr));
    reactor.run_ready();
  }
  std::unique_ptr<rpc::SimReactor> loop = std::make_unique<rpc::SimReactor>();
  rpc::SimReactor& reactor = *loop;
  PushGate gate;
  int passes = 0;
  std::vector<kj::Promise<void>> waiting;
};

TEST_F(PushGateTest, ThoseInTheMiddleOfTheirPushesMayGoOnWhileHeld) {
  int first = 0, second = 0;
  pass(&first);
  bool idle = false;
  auto hold = gate.hold().then([&] { idle = true; }).eagerlyEvaluate(nullptr);
  pass(&first);
  pass(&second);
  EXPECT_EQ(passes, 2);
  EXPECT_FALSE(idle);
  gate.leave(&first);
  reactor.run_ready();
  EXPECT_TRUE(idle);
  EXPECT_EQ(passes, 2);
  gate.release();
  reactor.run_ready();
  EXPECT_EQ(passes, 3);
}

TEST_F(PushGateTest, StaysHeldUntilEverybodyWhoHoldsItHasReleasedIt) {
  int one = 0, other = 0, closure = 0;
  auto first = gate.hold(&one), second = gate.hold(&other);
  pass(&closure);
  gate.release(&one);
  gate.release(&one);
  reactor.run_ready();
  EXPECT_EQ(passes, 0);
  gate.release(&other);
  reactor.run_ready();
  EXPECT_EQ(passes, 1);
}

TEST_F(PushGateTest, WhoGivesUpWhileHeldBackIsForgotten) {
  auto hold = gate.hold();
  int closure = 0;
  pass(&closure);
  waiting.clear();
  gate.release();
  reactor.run_ready();
  EXPECT_EQ(passes, 0);
  EXPECT_EQ(gate.pushing(), 0u);
}

TEST(ComputeTurns, ComeInTheOrderOfAskingAndNotForThoseWhoGaveUp) {
  rpc::SimReactor reactor;
  ComputeTurns turns(reactor);
  std::string order;
  const auto asked = [&](const char* name) {
    return turns.turn().then([&order, name] { order += name; }).eagerlyEvaluate(nullptr);
  };
  auto a = asked("a"), c = kj::Promise<void>(kj::READY_NOW);
  {
    auto b = asked("b");
    c = asked("c");
  }
  EXPECT_EQ(order, "");
  reactor.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(order, "ac");
}

}  // namespace
}  // namespace cairn::worker
