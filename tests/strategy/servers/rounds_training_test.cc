// Parameter servers in rounds train to the numbers of one device with the same global batch, and to
// the same bits each time.
#include <gtest/gtest.h>

#include <cmath>

#include "rpc/loop/reactor_thread.h"
#include "strategy/base/one_device_strategy.h"
#include "testing/simulated_cluster.h"
#include "tests/strategy/adult_model.h"
#include "tests/strategy/image_model.h"

namespace cairn {
namespace {

using testing::AdultModel;
using testing::ImageModel;

constexpr int kSteps = 200;
constexpr std::uint64_t kSeed = 11;

template <typename Model>
std::vector<float> losses_on_one_device() {
  OneDeviceStrategy strategy(kSeed);
  auto scope = strategy.scope();
  Model model;
  auto batches = strategy.iterate(Model::batches());
  Function step = strategy.function([&](Iterator input) { return model.train(input); });
  std::vector<float> losses;
  for (int i = 0; i < kSteps; ++i)
    losses.push_back(strategy.run(step, {batches}).front().template item<float>());
  return losses;
}

template <typename Model>
std::vector<float> losses_in_rounds(ParameterServerStrategy& strategy, int steps) {
  auto scope = strategy.scope();
  ClusterCoordinator coordinator(strategy);
  Model model;
  auto halves = coordinator.create_shared_dataset(Model::halves());
  Function step = strategy.function([&](Iterator input) { return model.train_in_sync(input); });
  std::vector<RemoteValue> shares;
  for (int i = 0; i < 2 * steps; ++i) shares.push_back(coordinator.schedule(step, {halves}));
  coordinator.join(kPatience);
  std::vector<float> losses;
  for (std::size_t i = 0; i < shares.size(); i += 2)
    losses.push_back(shares[i].get().item<float>() + shares[i + 1].get().item<float>());
  return losses;
}

// `network` is the seed of the delays: which worker is faster differs from step to step.
template <typename Model>
std::vector<float> losses_in_rounds(int steps, std::uint64_t network) {
  SimulatedClusterOptions options{.ps = 2, .workers = 2};
  options.network.seed = network;
  options.strategy.seed = kSeed;
  options.strategy.partitioner = FixedShardsPartitioner(2);
  options.strategy.consistency = Consistency::synchronous();
  SimulatedCluster cluster(options);
  return losses_in_rounds<Model>(cluster.strategy(), steps);
}

// The same over sockets, with threads of their own for each shard, each lane and the engine.
std::vector<float> losses_over_sockets(int steps) {
  auto network = rpc::make_socket_network();
  MemoryDisk disk;
  auto store = storage::make_memory_row_store(disk);
  auto offload = make_thread_offload(1);
  rpc::ReactorThread servers("servers");
  std::vector<std::unique_ptr<ps::PsServer>> ps;
  std::vector<std::unique_ptr<worker::WorkerServer>> workers;
  EngineOptions options;
  options.variables = {FixedShardsPartitioner(2), Placement::kSizeAware, kSeed};
  options.consistency = Consistency::synchronous();
  servers.run([&] {
    for (std::uint32_t i = 0; i < 2; ++i) {
      ps.push_back(std::make_unique<ps::PsServer>(
          servers.reactor(), *network, *offload, *store,
          ps::PsServerOptions{.index = i, .cluster = options.cluster_id}));
      options.cluster.add_task("ps", ps.back()->address().str());
      workers.push_back(std::make_unique<worker::WorkerServer>(
          servers.reactor(), *network,
          worker::WorkerOptions{.index = i,
                                .address = rpc::Address::parse("tcp://127.0.0.1:0"),
                                .cluster = options.cluster_id}));
      options.cluster.add_task("worker", workers.back()->address().str());
    }
  });
  std::vector<float> losses;
  {
    ParameterServerStrategy strategy(start_engine_thread(options, rpc::Transport::kAuto));
    losses = losses_in_rounds<AdultModel>(strategy, steps);
  }
  servers.run([&] {
    workers.clear();
    ps.clear();
  });
  return losses;
}

template <typename Model>
void train_as_one_device_does() {
  const std::vector<float> wanted = losses_on_one_device<Model>(),
                           losses = losses_in_rounds<Model>(kSteps, 1);
  ASSERT_EQ(losses.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_LE(std::abs(losses[i] - wanted[i]), 1e-5f * std::abs(wanted[i])) << "step " << i;
  EXPECT_LT(wanted.back(), wanted.front());  // it does learn
}

TEST(TrainingInRounds, LossesAreThoseOfOneDeviceWithTheGlobalBatch) {
  train_as_one_device_does<AdultModel>();
}
TEST(TrainingInRounds, LossesOfAConvolutionalNetworkAreThoseOfOneDevice) {
  train_as_one_device_does<ImageModel>();
}

TEST(TrainingInRounds, RepeatsBitForBitWhicheverWorkerIsFaster) {
  EXPECT_EQ(losses_in_rounds<AdultModel>(40, 1), losses_in_rounds<AdultModel>(40, 2));
  EXPECT_EQ(losses_in_rounds<ImageModel>(40, 1), losses_in_rounds<ImageModel>(40, 2));
}

TEST(TrainingInRounds, OverSocketsAndThreadsTheBitsAreThoseOfTheSimulation) {
  EXPECT_EQ(losses_over_sockets(40), losses_in_rounds<AdultModel>(40, 1));
}

}  // namespace
}  // namespace cairn
