// Requests to a running program from outside: for a checkpoint, and for its end.
#include <gtest/gtest.h>

#include <set>

#include "core/graph/ops.h"
#include "rpc/cairn.capnp.h"
#include "rpc/net/connection.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

// As `cairn ckpt save` does, over a connection of its own.
struct Asker {
  explicit Asker(SimulatedCluster& cluster) : connection(connect(cluster)) {}
  static std::unique_ptr<rpc::Connection> connect(SimulatedCluster& cluster) {
    rpc::Hello hello;
    hello.cluster = "cairn";
    hello.role = rpc::Role::kTool;
    return cluster.reactor().wait(cluster.network().host("asker").connect(
        cluster.reactor(), rpc::Address::parse("sim://chief"), hello, kPatience));
  }
  kj::Promise<std::string> save() {
    return connection->bootstrap<wire::CoordinatorControl>().saveRequest().send().then(
        [](auto&& response) { return std::string(response.getCheckpoint()); });
  }
  kj::Promise<void> stop() {
    return connection->bootstrap<wire::CoordinatorControl>().stopRequest().send().ignoreResult();
  }
  std::unique_ptr<rpc::Connection> connection;
};

struct AskedForCheckpoints : ::testing::Test {
  SimulatedCluster cluster{{.ps = 2, .workers = 1}};
  ClusterCoordinator coordinator{cluster.strategy()};
  Counters counters{cluster.strategy()};
  AskedForCheckpoints() { coordinator.save_automatically({.folder = "/checkpoints"}); }
  std::string wait(kj::Promise<std::string> name) { return cluster.reactor().wait(kj::mv(name)); }
};

TEST_F(AskedForCheckpoints, WhoAsksBeforeOneHasBegunSharesIt) {
  Asker asker(cluster);
  std::vector<kj::Promise<std::string>> all;
  for (int i = 0; i < 5; ++i) all.push_back(asker.save());
  std::set<std::string> names;
  for (auto& one : all) names.insert(wait(kj::mv(one)));
  EXPECT_LE(names.size(), 2u);  // the first may have begun when the others came
  EXPECT_EQ(coordinator.stats().checkpoints, names.size());
}

TEST_F(AskedForCheckpoints, OneWhoseAskerIsGoneIsMadeAllTheSame) {
  {
    Asker asker(cluster);
    auto given_up = asker.save();
    cluster.run_for(std::chrono::microseconds(300));  // the call is there
  }
  cluster.run_for(std::chrono::seconds(1));
  EXPECT_EQ(coordinator.stats().checkpoints, 1u);
  EXPECT_NO_THROW(coordinator.save({.folder = "/checkpoints"}));
}

TEST_F(AskedForCheckpoints, AStopThatComesBeforeTheProgramFirstLooksForOneWaits) {
  Asker asker(cluster);
  auto stop = asker.stop();
  cluster.run_for(std::chrono::milliseconds(500));
  EXPECT_FALSE(coordinator.stop_requested());
  cluster.reactor().wait(kj::mv(stop));
  EXPECT_TRUE(coordinator.stop_requested());
}

TEST_F(AskedForCheckpoints, AStopIsRefusedWhereTheProgramNeverLooks) {
  EXPECT_THROW(cluster.reactor().wait(Asker(cluster).stop()), FailedPreconditionError);
  EXPECT_FALSE(coordinator.stop_requested());
}

}  // namespace
}  // namespace cairn
