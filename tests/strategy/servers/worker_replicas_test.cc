// Workers of several devices train to the numbers of one device with the same global batch, and to
// the same bits each time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"
#include "testing/simulated_cluster.h"
#include "tests/strategy/adult_model.h"
#include "tests/strategy/image_model.h"
#include "tests/strategy/in_sync_kinds.h"

namespace cairn {
namespace {

using testing::AdultModel;
using ::testing::HasSubstr;
using testing::ImageModel;
using testing::logical_cpus;

constexpr int kClosureSteps = 200;
constexpr std::uint64_t kClusterSeed = 11;

SimulatedClusterOptions cluster_of(int workers, int devices, const Consistency& consistency) {
  SimulatedClusterOptions options{.ps = 2, .workers = workers};
  options.strategy.seed = kClusterSeed;
  options.strategy.partitioner = FixedShardsPartitioner(2);
  options.strategy.consistency = consistency;
  options.strategy.devices = logical_cpus(devices);
  options.strategy.engine.pipeline_depth = 1;
  return options;
}

// A step's loss is the sum of its closures', of which each worker has one.
template <typename Model>
std::vector<float> losses_by_workers(const SimulatedClusterOptions& options, const Dataset& data,
                                     int steps) {
  SimulatedCluster cluster(options);
  ParameterServerStrategy& strategy = cluster.strategy();
  auto scope = strategy.scope();
  ClusterCoordinator coordinator(strategy);
  Model model;
  auto batches = coordinator.create_shared_dataset(data);
  Function replica = strategy.function([&](Iterator input) { return model.train_in_sync(input); });
  Function step = strategy.function([&](Iterator input) {
    return strategy.reduce(ReduceOp::kSum, strategy.run(replica, {input})[0]);
  });
  const int workers = options.workers;
  std::vector<RemoteValue> closures;
  for (int i = 0; i < workers * steps; ++i)
    closures.push_back(coordinator.schedule(step, {batches}));
  coordinator.join(kPatience);
  std::vector<float> losses(static_cast<std::size_t>(steps), 0);
  for (std::size_t i = 0; i < closures.size(); ++i)
    losses[i / static_cast<std::size_t>(workers)] += closures[i].get().item<float>();
  return losses;
}

template <typename Model>
void expect_those_of_one_device(const std::vector<float>& losses) {
  OneDeviceStrategy strategy(kClusterSeed);
  auto scope = strategy.scope();
  Model model;
  auto batches = strategy.iterate(Model::batches());
  Function step = strategy.function([&](Iterator input) { return model.train(input); });
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const float wanted = strategy.run(step, {batches}).front().template item<float>();
    ASSERT_LE(std::abs(losses[i] - wanted), 1e-5f * std::abs(wanted)) << "step " << i;
  }
  EXPECT_LT(losses.back(), losses.front());  // it does learn
}

TEST(WorkerReplicas, TrainAsOneDeviceWithTheWholeBatch) {
  for (int devices : {2, 3}) {
    const auto options = cluster_of(1, devices, {});
    expect_those_of_one_device<AdultModel>(
        losses_by_workers<AdultModel>(options, AdultModel::batches(), kClosureSteps));
    expect_those_of_one_device<ImageModel>(
        losses_by_workers<ImageModel>(options, ImageModel::batches(), kClosureSteps));
  }
}

TEST(WorkerReplicas, OfSeveralWorkersInStepTrainAsOneDeviceWithAllBatchesOfAStep) {
  const auto options = cluster_of(2, 2, Consistency::synchronous());
  expect_those_of_one_device<AdultModel>(
      losses_by_workers<AdultModel>(options, AdultModel::halves(), kClosureSteps));
}

TEST(WorkerReplicas, RepeatBitForBit) {
  const auto options = cluster_of(1, 3, {});
  EXPECT_EQ(losses_by_workers<AdultModel>(options, AdultModel::batches(), 20),
            losses_by_workers<AdultModel>(options, AdultModel::batches(), 20));
}

// One closure is one step and one push, however many replicas it has; and a worker's death in
// between is one closure that runs again.
TEST(WorkerReplicas, AClosureOfALostWorkerRunsAgainWithAllItsReplicas) {
  auto options = cluster_of(2, 2, {});
  SimulatedCluster cluster(options);
  ParameterServerStrategy& strategy = cluster.strategy();
  auto scope = strategy.scope();
  ClusterCoordinator coordinator(strategy);
  Variable rows = strategy.create_variable(
      {.name = "rows", .shape = {400, 1}, .aggregation = Aggregation::kSum});
  Variable count = strategy.create_variable(
      {.name = "count", .dtype = DType::kInt64, .shape = {}, .aggregation = Aggregation::kSum});
  auto batches = coordinator.create_shared_dataset(Dataset::range(400).batch(4));
  Function replica = strategy.function([&](Iterator input) {
    const Array ids = input.get_next().features["value"];
    rows.scatter_add(ids, reshape(cast(ids * 0 + 1, DType::kFloat32), {Shape::kUnknown, 1}));
    count.assign_add(dim_size(ids, 0));
  });
  Function step = strategy.function([&](Iterator input) { strategy.run(replica, {input}); });
  for (int i = 0; i < 100; ++i) coordinator.schedule(step, {batches});
  cluster.run_for(std::chrono::milliseconds(2));
  EXPECT_FALSE(coordinator.done());
  cluster.kill_worker(0);
  cluster.start_worker(0);
  coordinator.join(kPatience);
  const Tensor all = rows.read().eval();
  for (float row : all.values<float>()) EXPECT_EQ(row, 1.0f);
  EXPECT_EQ(count.read().eval().item<std::int64_t>(), 400);
  EXPECT_EQ(coordinator.stats().global_step, 100);
}

TEST(WorkerReplicas, TakeTheBatchesOfADatasetFunctionInTurnAndMissNone) {
  SimulatedCluster cluster(cluster_of(1, 3, {}));
  ParameterServerStrategy& strategy = cluster.strategy();
  ClusterCoordinator coordinator(strategy);
  auto batches = coordinator.create_per_worker_dataset([](const InputContext& context) {
    return Dataset::range(8).batch(context.get_per_replica_batch_size(6));
  });
  Function replica = strategy.function(
      [](Iterator input) { return expand_dims(sum(input.get_next().features["value"]), 0); });
  Function step = strategy.function(
      [&](Iterator input) { return strategy.gather(strategy.run(replica, {input})[0], 0); });
  auto sums = [&] {
    const Tensor values = coordinator.schedule(step, {batches}).get(kPatience);
    const auto all = values.values<std::int64_t>();
    return std::vector<std::int64_t>(all.begin(), all.end());
  };
  EXPECT_EQ(sums(), (std::vector<std::int64_t>{1, 5, 9}));
  EXPECT_EQ(sums(), (std::vector<std::int64_t>{13, 0, 0}));
  EXPECT_THROW(sums(), OutOfRangeError);
}

TEST(WorkerReplicas, AreNamedAfterTheirWorkersDevices) {
  SimulatedCluster cluster(cluster_of(2, 2, {}));
  ParameterServerStrategy& strategy = cluster.strategy();
  EXPECT_EQ(strategy.num_replicas_in_sync(), 2);
  EXPECT_EQ(strategy.num_workers(), 2);
  EXPECT_EQ(strategy.extended().worker_devices(),
            (std::vector<std::string>{"/job:worker/task:0/cpu:0", "/job:worker/task:0/cpu:1",
                                      "/job:worker/task:1/cpu:0", "/job:worker/task:1/cpu:1"}));
}

TEST(WorkerReplicas, OnWhatWorkersComputeIsNotTheirCoordinatorsChoice) {
  SimulatedClusterOptions options = cluster_of(1, 1, {});
  options.strategy.devices = {"gpu:0"};
  try {
    SimulatedCluster cluster(options);
    ADD_FAILURE() << "it was not refused";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"gpu:0\""));
    EXPECT_THAT(error.what(), HasSubstr("cairn-worker --device"));
  }
}

}  // namespace
}  // namespace cairn
