// Training goes on while strangers are at every door of the cluster.
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "rpc/net/hello_io.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using rpc::Address;

// Streams from a host that is no task of the cluster.
class Strangers {
 public:
  explicit Strangers(SimulatedCluster& cluster)
      : cluster_(cluster), network_(cluster.network().host("stranger")) {}

  rpc::ByteStream& dial(const std::string& whom) {
    auto socket =
        cluster_.reactor().wait(network_.dial(cluster_.reactor(), Address::parse("sim://" + whom)));
    streams_.push_back(socket->attach(cluster_.reactor(), rpc::kPlainStream));
    return *streams_.back();
  }
  void send(const std::string& whom, std::string bytes) {
    auto kept = std::make_shared<std::string>(std::move(bytes));
    auto written = dial(whom).write(kept->data(), kept->size());
    writes_.push_back(
        written.attach(kj::mv(kept)).catch_([](kj::Exception&&) {}).eagerlyEvaluate(nullptr));
  }
  void send_hello(const std::string& whom, rpc::Hello hello, const std::string& then = "") {
    const auto bytes = rpc::encode(hello);
    send(whom, std::string(bytes.begin(), bytes.end()) + then);
  }

 private:
  SimulatedCluster& cluster_;
  rpc::Network& network_;
  std::vector<kj::Own<rpc::ByteStream>> streams_;
  std::vector<kj::Promise<void>> writes_;
};

rpc::Hello hello(std::uint32_t endpoint = 1) {
  rpc::Hello hello;
  hello.cluster = "cairn";
  hello.role = rpc::Role::kWorker;
  hello.endpoint = endpoint;
  hello.incarnation = 99;
  return hello;
}

std::string random_bytes(Random& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.bits());
  return bytes;
}

void harass(Strangers& strangers, Random& random, const std::string& whom) {
  rpc::Hello other = hello();
  other.cluster = "another";
  strangers.send_hello(whom, other);
  other = hello();
  other.version = 2;
  strangers.send_hello(whom, other);
  other = hello();
  other.token = "guess";
  strangers.send_hello(whom, other);
  strangers.send_hello(whom, hello(77));
  strangers.send(whom, random_bytes(random, 1 + random.below(2000)));
  // and no more
  strangers.send(whom, "CAIRNRPC");
  // rubbish from one who may come in
  strangers.send_hello(whom, hello(), random_bytes(random, 8 + 8 * random.below(100)));
  // a message of 16 GiB
  strangers.send_hello(whom, hello(), std::string("\0\0\0\0\xff\xff\xff\x7f", 8));
}

TEST(HostilePeers, CostATrainingNothing) {
  constexpr int kClosures = 200, kRounds = 10;
  SimulatedCluster cluster({.ps = 2, .workers = 2, .seed = 11});
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  auto data = coordinator.create_shared_dataset(Dataset::range(Counters::kRows).batch(1).repeat());
  Function step = cluster.strategy().function(
      [&](Iterator input) { counters.add_one(input.get_next().features["value"]); });
  Strangers strangers(cluster);
  Random random(11);
  for (int i = 0; i < kClosures; ++i) {
    if (i % (kClosures / kRounds) == 0)
      for (const char* whom : {"ps0", "ps1", "worker0", "worker1"}) harass(strangers, random, whom);
    coordinator.schedule(step, {data});
  }
  coordinator.join(std::chrono::seconds(60));  // virtual
  EXPECT_EQ(counters.value_of_v(), kClosures);
  EXPECT_EQ(counters.value_of_w(), kClosures);
  EXPECT_EQ(coordinator.stats().retried, 0u);
  EXPECT_TRUE(coordinator.stats().losses.empty());
}

TEST(HostilePeers, AThousandIdleStreamsKeepNoWorkerFromComingBack) {
  SimulatedCluster cluster({.ps = 1, .workers = 2, .seed = 12});
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  auto data = coordinator.create_shared_dataset(Dataset::range(Counters::kRows).batch(1).repeat());
  Function step = cluster.strategy().function(
      [&](Iterator input) { counters.add_one(input.get_next().features["value"]); });
  Strangers strangers(cluster);
  for (int i = 0; i < 1000; ++i) strangers.dial(i % 2 == 0 ? "ps0" : "worker0");
  cluster.kill_worker(1);
  cluster.run_for(std::chrono::seconds(2));
  cluster.start_worker(1);
  for (int i = 0; i < 1000; ++i) strangers.dial(i % 2 == 0 ? "ps0" : "worker1");
  const Duration before = cluster.reactor().now();
  for (int i = 0; i < 100; ++i) coordinator.schedule(step, {data});
  coordinator.join(std::chrono::seconds(60));  // virtual
  EXPECT_EQ(counters.value_of_v(), 100);
  EXPECT_LT(cluster.reactor().now() - before, std::chrono::seconds(30));
}

}  // namespace
}  // namespace cairn
