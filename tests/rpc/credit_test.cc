#include <gtest/gtest.h>

#include <optional>

#include "rpc/credit.h"
#include "rpc/reactor.h"

namespace cairn::rpc {
namespace {

struct CreditGateTest : testing::Test {
  std::unique_ptr<Reactor> reactor = make_reactor();
  CreditGate gate{100};
  kj::Promise<Credit> polled(kj::Promise<Credit> promise, bool expect_ready) {
    EXPECT_EQ(promise.poll(reactor->scope()), expect_ready);
    return promise;
  }
};

TEST_F(CreditGateTest, ATakerWaitsUntilItsBytesFit) {
  std::optional<Credit> first = reactor->wait(gate.acquire(70));
  auto second = polled(gate.acquire(40), false);
  first.reset();
  EXPECT_EQ(reactor->wait(kj::mv(second)).bytes(), 40u);
  EXPECT_EQ(gate.in_use(), 0u);
}

TEST_F(CreditGateTest, TakersAreServedInOrderSoThatALargeOneIsNotStarved) {
  std::optional<Credit> first = reactor->wait(gate.acquire(70));
  auto large = polled(gate.acquire(90), false);
  auto small = polled(gate.acquire(10), false);
  first.reset();
  auto got_large = reactor->wait(kj::mv(large));
  auto got_small = reactor->wait(kj::mv(small));
  EXPECT_EQ(gate.in_use(), 100u);
}

TEST_F(CreditGateTest, AWishAboveTheWholeGateGoesAlone) {
  std::optional<Credit> huge = reactor->wait(gate.acquire(1000));
  auto next = polled(gate.acquire(1), false);
  huge.reset();
  EXPECT_EQ(reactor->wait(kj::mv(next)).bytes(), 1u);
}

TEST_F(CreditGateTest, ADroppedTakerLetsTheNextOneThrough) {
  std::optional<Credit> first = reactor->wait(gate.acquire(100));
  auto dropped = std::make_unique<kj::Promise<Credit>>(gate.acquire(100));
  auto next = polled(gate.acquire(50), false);
  dropped.reset();
  first.reset();
  EXPECT_EQ(reactor->wait(kj::mv(next)).bytes(), 50u);
}

TEST_F(CreditGateTest, ClosingFailsTheWaitersAndCreditsMayOutliveTheGate) {
  std::optional<Credit> outlives;
  kj::Promise<Credit> waiting = nullptr;
  {
    CreditGate local(10);
    outlives = reactor->wait(local.acquire(10));
    waiting = polled(local.acquire(1), false);
  }
  EXPECT_THROW(reactor->wait(kj::mv(waiting)), UnavailableError);
  outlives.reset();
}

}  // namespace
}  // namespace cairn::rpc
