#include <gtest/gtest.h>

#include "rpc/net/sim_network.h"
#include "tests/rpc/echo_service.h"

namespace cairn::rpc {
namespace {

using namespace std::chrono_literals;

const Address kPs = Address::parse("sim://ps0");

struct SimCluster {
  explicit SimCluster(std::uint64_t seed = 1) : network(reactor, {.seed = seed}) { start_ps(); }
  void start_ps() {
    acceptor.reset();
    acceptor = std::make_unique<Acceptor>(network.host("ps0"), kPs, ps_options(),
                                          std::vector{echo_endpoint(reactor, log)});
  }
  std::unique_ptr<Connection> connect(const std::string& from = "worker0", Duration deadline = 1s) {
    return reactor.wait(network.host(from).connect(reactor, kPs, worker_hello(), deadline));
  }
  template <typename T>
  ErrorParts error(kj::Promise<T> promise) {
    return error_of([&](auto p) { reactor.wait(kj::mv(p)); }, kj::mv(promise));
  }
  SimReactor reactor;
  SimNetwork network;
  EchoLog log;
  std::unique_ptr<Acceptor> acceptor;
};

Task<void> caller(Echo::Client client, int calls, std::vector<std::uint64_t>& order,
                  std::uint64_t base) {
  for (int i = 0; i < calls; ++i) {
    co_await echo(client, base + i);
    order.push_back(base + i);
  }
}

// Three workers calling at once: who was answered when, and the network's own record.
std::pair<std::vector<std::uint64_t>, std::uint64_t> run_of(std::uint64_t seed) {
  SimCluster cluster(seed);
  std::vector<std::uint64_t> order;
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<kj::Promise<void>> callers;
  for (int worker = 0; worker < 3; ++worker) {
    connections.push_back(cluster.connect(str("worker", worker)));
    callers.push_back(caller(connections.back()->bootstrap<Echo>(), 20, order, 100 * worker)
                          .start()
                          .eagerlyEvaluate(nullptr));
  }
  for (auto& promise : callers) cluster.reactor.wait(kj::mv(promise));
  return {order, cluster.network.fingerprint()};
}

TEST(SimNetwork, OneSeedIsOneOrderOfEvents) {
  auto first = run_of(7);
  auto second = run_of(7);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.first.size(), 60u);
  auto other = run_of(8);
  EXPECT_NE(first.first, other.first);
  EXPECT_NE(first.second, other.second);
}

TEST(SimNetwork, ACallTakesVirtualTimeOnly) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto before = cluster.reactor.now();
  cluster.reactor.wait(echo(connection->bootstrap<Echo>(), 1));
  auto took = cluster.reactor.now() - before;
  EXPECT_GE(took, Duration(100us));  // two deliveries
  EXPECT_LE(took, Duration(2ms));
}

TEST(SimNetwork, ASlowHostTakesSoManyTimesAsLongUntilItIsFastAgain) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto client = connection->bootstrap<Echo>();
  const auto time_of_ten = [&] {
    const Duration from = cluster.reactor.now();
    for (int i = 0; i < 10; ++i) cluster.reactor.wait(echo(client, 1));
    return cluster.reactor.now() - from;
  };
  const Duration fast = time_of_ten();
  cluster.network.slow("worker0", 20);
  EXPECT_GT(time_of_ten(), 5 * fast);
  cluster.network.slow("worker0", 1);
  EXPECT_LT(time_of_ten(), 5 * fast);
}

TEST(SimNetwork, ACutBreaksStreamsAndRefusesNewOnesUntilHealed) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto other = cluster.connect("worker1");
  auto pending = connection->bootstrap<Echo>().neverRequest().send().ignoreResult();
  cluster.reactor.wait(echo(connection->bootstrap<Echo>(), 1));
  cluster.network.cut("worker0", "ps0");
  EXPECT_EQ(cluster.error(kj::mv(pending)).code, Code::kUnavailable);
  EXPECT_THROW(cluster.connect(), UnavailableError);
  EXPECT_EQ(cluster.reactor.wait(echo(other->bootstrap<Echo>(), 5)), 5u);
  cluster.network.heal("worker0", "ps0");
  EXPECT_EQ(cluster.reactor.wait(echo(cluster.connect()->bootstrap<Echo>(), 6)), 6u);
}

TEST(SimNetwork, AOneWayPartitionHoldsTheRepliesAndHealingDeliversThem) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto client = connection->bootstrap<Echo>();
  cluster.reactor.wait(echo(client, 1));
  cluster.network.partition("ps0", "worker0");
  auto call = echo(client, 2).eagerlyEvaluate(nullptr);
  cluster.reactor.advance(10s);
  EXPECT_EQ(cluster.log.served, 2u);  // the request went through
  EXPECT_FALSE(call.poll(cluster.reactor.scope()));
  cluster.network.heal("worker0", "ps0");
  EXPECT_EQ(cluster.reactor.wait(kj::mv(call)), 2u);
}

// The first call is under way when the partition begins, the second is held at once.
TEST(SimNetwork, APartitionKeepsTheOrderOfWhatWasSent) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto client = connection->bootstrap<Echo>();
  cluster.reactor.wait(echo(client, 1));
  std::vector<std::uint64_t> order;
  auto first = caller(client, 1, order, 10).start().eagerlyEvaluate(nullptr);
  EXPECT_FALSE(first.poll(cluster.reactor.scope()));
  cluster.network.partition("worker0", "ps0");
  auto second = caller(client, 1, order, 20).start().eagerlyEvaluate(nullptr);
  EXPECT_FALSE(second.poll(cluster.reactor.scope()));
  cluster.reactor.advance(1s);
  EXPECT_EQ(cluster.log.served, 1u);
  cluster.network.heal("worker0", "ps0");
  cluster.reactor.wait(kj::mv(first));
  cluster.reactor.wait(kj::mv(second));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{10, 20}));
}

TEST(SimNetwork, APartitionBothWaysHoldsRequestsAndDialling) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto client = connection->bootstrap<Echo>();
  cluster.reactor.wait(echo(client, 1));
  cluster.network.partition_both("ps0", "worker0");
  auto call = cluster.reactor.with_deadline(echo(client, 2), 5s, "the echo");
  EXPECT_EQ(cluster.error(kj::mv(call)).code, Code::kDeadlineExceeded);
  EXPECT_EQ(cluster.log.served, 1u);
  EXPECT_THROW(cluster.connect("worker0", 3s), DeadlineExceededError);
  cluster.network.heal_all();
  EXPECT_EQ(cluster.reactor.wait(echo(client, 3)), 3u);
}

// A process that was stopped: its kernel takes connections, and what it had sent arrives.
TEST(SimNetwork, AHostThatStandsStillServesCallsAndDiallersOnceItGoesOn) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto client = connection->bootstrap<Echo>();
  cluster.reactor.wait(echo(client, 1));
  cluster.network.stop("ps0");
  auto call = echo(client, 2).eagerlyEvaluate(nullptr);
  auto dial = cluster.network.host("worker1")
                  .connect(cluster.reactor, kPs, worker_hello(), 1min)
                  .eagerlyEvaluate(nullptr);
  cluster.reactor.advance(10s);
  cluster.network.heal_all();
  EXPECT_EQ(cluster.log.served, 1u);
  EXPECT_FALSE(call.poll(cluster.reactor.scope()));
  cluster.network.go_on("ps0");
  EXPECT_EQ(cluster.reactor.wait(kj::mv(call)), 2u);
  EXPECT_EQ(cluster.reactor.wait(echo(cluster.reactor.wait(kj::mv(dial))->bootstrap<Echo>(), 3)),
            3u);
}

TEST(SimNetwork, WhatAHostHadSentBeforeItStoodStillArrives) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto client = connection->bootstrap<Echo>();
  cluster.reactor.wait(echo(client, 1));
  auto call = echo(client, 2).eagerlyEvaluate(nullptr);
  EXPECT_FALSE(call.poll(cluster.reactor.scope()));
  cluster.network.stop("worker0");
  cluster.reactor.advance(1s);
  EXPECT_EQ(cluster.log.served, 2u);
  EXPECT_FALSE(call.poll(cluster.reactor.scope()));
  cluster.network.go_on("worker0");
  EXPECT_EQ(cluster.reactor.wait(kj::mv(call)), 2u);
}

TEST(SimNetwork, ADroppedReplyWasServedButIsLostToTheCaller) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto client = connection->bootstrap<Echo>();
  cluster.reactor.wait(echo(client, 1));
  cluster.network.drop_next("ps0", "worker0");
  EXPECT_EQ(cluster.error(echo(client, 2)).code, Code::kUnavailable);
  EXPECT_EQ(cluster.log.served, 2u);
  EXPECT_EQ(cluster.reactor.wait(echo(cluster.connect()->bootstrap<Echo>(), 3)), 3u);
}

TEST(SimNetwork, ACrashEndsAllConnectionsAndTheHostMayComeBack) {
  SimCluster cluster;
  auto first = cluster.connect("worker0");
  auto second = cluster.connect("worker1");
  cluster.network.crash("ps0");
  cluster.reactor.wait(first->on_disconnect());
  cluster.reactor.wait(second->on_disconnect());
  EXPECT_THROW(cluster.connect(), UnavailableError);
  cluster.start_ps();
  EXPECT_EQ(cluster.reactor.wait(echo(cluster.connect()->bootstrap<Echo>(), 4)), 4u);
}

TEST(SimNetwork, BulkArrivesWhole) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto request = connection->bootstrap<Echo>().pullRequest();
  request.setBytes(3'000'001);
  auto response =
      cluster.reactor.wait(kj::Promise<capnp::Response<Echo::PullResults>>(request.send()));
  auto data = response.getData();
  ASSERT_EQ(data.size(), 3'000'001u);
  for (std::size_t i = 0; i < data.size(); i += 997)
    ASSERT_EQ(data[i], static_cast<std::uint8_t>(i * 31));
}

TEST(SimNetwork, EverythingMayEndWithBytesUnderWayAndHeldBack) {
  SimCluster cluster;
  auto connection = cluster.connect();
  auto client = connection->bootstrap<Echo>();
  cluster.network.partition("ps0", "worker0");
  auto call = echo(client, 1).eagerlyEvaluate(nullptr);
  cluster.reactor.advance(1s);
  auto another = echo(client, 2).eagerlyEvaluate(nullptr);
  EXPECT_EQ(cluster.log.served, 1u);
}

}  // namespace
}  // namespace cairn::rpc
