#include "rpc/loop/gate.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "rpc/loop/reactor.h"
#include "rpc/loop/sim_reactor.h"

namespace cairn::rpc {
namespace {

struct BytesUnderWay : testing::Test {
  std::unique_ptr<Reactor> reactor = make_reactor();
  Gate gate{100};
  kj::Promise<Gate::Pass> polled(kj::Promise<Gate::Pass> promise, bool expect_ready) {
    EXPECT_EQ(promise.poll(reactor->scope()), expect_ready);
    return promise;
  }
};

TEST_F(BytesUnderWay, ATakerWaitsUntilItsBytesFit) {
  std::optional<Gate::Pass> first = reactor->wait(gate.enter(70));
  auto second = polled(gate.enter(40), false);
  first.reset();
  EXPECT_EQ(reactor->wait(kj::mv(second)).units(), 40u);
  EXPECT_EQ(gate.inside(), 0u);
}

TEST_F(BytesUnderWay, TakersAreServedInOrderSoThatALargeOneIsNotStarved) {
  std::optional<Gate::Pass> first = reactor->wait(gate.enter(70));
  auto large = polled(gate.enter(90), false);
  auto small = polled(gate.enter(10), false);
  first.reset();
  auto got_large = reactor->wait(kj::mv(large));
  auto got_small = reactor->wait(kj::mv(small));
  EXPECT_EQ(gate.inside(), 100u);
}

TEST_F(BytesUnderWay, AWishAboveTheWholeGateGoesAlone) {
  std::optional<Gate::Pass> huge = reactor->wait(gate.enter(1000));
  auto next = polled(gate.enter(1), false);
  huge.reset();
  EXPECT_EQ(reactor->wait(kj::mv(next)).units(), 1u);
}

TEST_F(BytesUnderWay, ADroppedTakerLetsTheNextOneThrough) {
  std::optional<Gate::Pass> first = reactor->wait(gate.enter(100));
  auto dropped = std::make_unique<kj::Promise<Gate::Pass>>(gate.enter(100));
  auto next = polled(gate.enter(50), false);
  dropped.reset();
  first.reset();
  EXPECT_EQ(reactor->wait(kj::mv(next)).units(), 50u);
}

TEST_F(BytesUnderWay, ClosingFailsTheWaitersAndPassesMayOutliveTheGate) {
  std::optional<Gate::Pass> outlives;
  kj::Promise<Gate::Pass> waiting = nullptr;
  {
    Gate local(10);
    outlives = reactor->wait(local.enter(10));
    waiting = polled(local.enter(1), false);
  }
  EXPECT_THROW(reactor->wait(kj::mv(waiting)), UnavailableError);
  outlives.reset();
}

class PlacesAtWork : public testing::Test {
 protected:
  // Enters and notes `name` when inside.
  void enter(const std::string& name, Company company = Company::kShared) {
    waiting.erase(name);
    waiting.emplace(name, gate.enter(1, company)
                              .then([this, name](Gate::Pass&& pass) {
                                order += name;
                                inside[name] = std::move(pass);
                              })
                              .eagerlyEvaluate(nullptr));
    reactor.run_ready();
  }
  void leave(const std::string& name) {
    inside.erase(name);
    reactor.run_ready();
  }
  std::unique_ptr<SimReactor> loop = std::make_unique<SimReactor>();
  SimReactor& reactor = *loop;
  Gate gate{2};
  std::string order;
  std::map<std::string, kj::Promise<void>> waiting;
  std::map<std::string, Gate::Pass> inside;
};

TEST_F(PlacesAtWork, NoMoreThanTheLimitAreInsideFirstComeFirstServed) {
  for (const char* name : {"a", "b", "c", "d"}) enter(name);
  EXPECT_EQ(order, "ab");
  leave("b");
  EXPECT_EQ(order, "abc");
  leave("a");
  EXPECT_EQ(order, "abcd");
}

TEST_F(PlacesAtWork, AloneMeansAfterAllOthersAndBeforeAllOthers) {
  enter("a");
  enter("x", Company::kAlone);
  enter("b");
  EXPECT_EQ(order, "a");
  leave("a");
  EXPECT_EQ(order, "ax");
  leave("x");
  EXPECT_EQ(order, "axb");
}

TEST_F(PlacesAtWork, ADroppedPromiseIsPassedOver) {
  for (const char* name : {"a", "b", "c", "d"}) enter(name);
  waiting.erase("c");
  leave("a");
  EXPECT_EQ(order, "abd");
}

TEST_F(PlacesAtWork, AHigherLimitLetsMoreIn) {
  for (const char* name : {"a", "b", "c", "d"}) enter(name);
  gate.set_limit(3);
  reactor.run_ready();
  EXPECT_EQ(order, "abc");
}

}  // namespace
}  // namespace cairn::rpc
