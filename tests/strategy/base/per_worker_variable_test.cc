// A worker's number, and what each worker has of its own.
#include "strategy/base/per_worker_variable.h"

#include <gtest/gtest.h>

#include <set>

#include "core/graph/ops.h"
#include "core/graph/static_hash_table.h"
#include "strategy/base/one_device_strategy.h"
#include "testing/simulated_cluster.h"
#include "tests/strategy/in_sync/workers_in_step.h"

namespace cairn {
namespace {

std::vector<std::int64_t> counts(const PerWorkerVariable& variable) {
  std::vector<std::int64_t> all;
  for (const Array& one : variable.read_all()) all.push_back(one.eval().item<std::int64_t>());
  return all;
}

TEST(WorkerIndex, IsThatOfTheWorkerThatRunsTheFunction) {
  SimulatedCluster cluster({.ps = 1, .workers = 3, .lanes = 2});
  ClusterCoordinator coordinator(cluster.strategy());
  auto scope = cluster.strategy().scope();
  EXPECT_EQ(current_num_workers(), 3);
  Function tell = cluster.strategy().function([](Array x) {
    return std::vector<Array>{current_worker_index(), x + current_worker_index()};
  });
  std::vector<RemoteValue> told;
  for (std::int64_t i = 0; i < 60; ++i)
    told.push_back(coordinator.schedule(tell, {Tensor::scalar(std::int64_t{100})}));
  std::set<std::int64_t> workers;
  for (const RemoteValue& one : told) {
    const auto values = one.get_all(kPatience);
    workers.insert(values[0].item<std::int64_t>());
    EXPECT_EQ(values[1].item<std::int64_t>(), 100 + values[0].item<std::int64_t>());
  }
  EXPECT_EQ(workers, (std::set<std::int64_t>{0, 1, 2}));
}

TEST(WorkerIndex, IsAskedForWithinFunctionsThatAreRunToo) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  Strategy& strategy = cluster.strategy();
  auto scope = strategy.scope();
  Function inner = strategy.function([] { return current_worker_index() + 5; });
  Function outer = strategy.function(
      [&](Array x) { return Array(strategy.run(inner)[0]) * x + current_worker_index(); });
  EXPECT_EQ(
      strategy.call(outer, {Tensor::scalar(std::int64_t{3})})[0].tensor().item<std::int64_t>(), 15);
}

TEST(WorkerIndex, IsNobodysOutsideOfAFunction) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  auto scope = cluster.strategy().scope();
  EXPECT_THROW(current_worker_index(), FailedPreconditionError);
  PerWorkerVariable seen({.name = "seen"});
  EXPECT_THROW(seen.read(), FailedPreconditionError);
  EXPECT_THROW(seen.assign(1.0f), FailedPreconditionError);
}

TEST(PerWorkerVariable, CountsForEachWorkerAndOutlivesIt) {
  SimulatedCluster cluster(
      {.ps = 2, .workers = 2, .lanes = 2, .strategy = {.partitioner = FixedShardsPartitioner(2)}});
  ClusterCoordinator coordinator(cluster.strategy());
  auto scope = cluster.strategy().scope();
  PerWorkerVariable seen({.name = "seen", .dtype = DType::kInt64});
  EXPECT_EQ(seen.rows().shape(), Shape({2}));
  EXPECT_FALSE(seen.rows().spec().trainable);
  Function count = cluster.strategy().function([&] { seen.assign_add(1); });
  for (int i = 0; i < 200; ++i) coordinator.schedule(count);
  cluster.run_for(std::chrono::milliseconds(10));
  cluster.kill_worker(1);
  cluster.run_for(std::chrono::milliseconds(20));
  cluster.start_worker(1);
  coordinator.join(kPatience);
  const auto each = counts(seen);
  ASSERT_EQ(each.size(), 2u);
  EXPECT_EQ(each[0] + each[1], 200) << each[0] << " and " << each[1];
}

TEST(PerWorkerVariable, BeginsWithTheInitialValueAndIsReadByItsWorker) {
  SimulatedCluster cluster({.ps = 1, .workers = 2});
  ClusterCoordinator coordinator(cluster.strategy());
  auto scope = cluster.strategy().scope();
  const std::vector<float> initial = {1, 2};
  PerWorkerVariable own({.name = "own",
                         .shape = {2},
                         .initializer = Initializer::from(Tensor::of<float>({2}, initial))});
  for (const Array& one : own.read_all())
    EXPECT_TRUE(std::ranges::equal(one.eval().values<float>(), initial));
  Function mark = cluster.strategy().function([&] {
    own.assign(own.read() * 0.0f + cast(current_worker_index() + 7, DType::kFloat32));
    own.assign_sub(Tensor::of<float>({2}, std::vector<float>{0, 1}));
    return std::vector<Array>{current_worker_index(), own.read()};
  });
  std::vector<RemoteValue> marked;
  for (int i = 0; i < 20; ++i) marked.push_back(coordinator.schedule(mark));
  for (const RemoteValue& one : marked) {
    const auto values = one.get_all(kPatience);
    const auto worker = static_cast<float>(values[0].item<std::int64_t>());
    EXPECT_TRUE(
        std::ranges::equal(values[1].values<float>(), std::vector<float>{worker + 7, worker + 6}));
  }
}

TEST(PerWorkerVariable, IsOneValueWhereThereIsOneWorker) {
  OneDeviceStrategy strategy;
  auto scope = strategy.scope();
  EXPECT_EQ(current_worker_index().eval().item<std::int64_t>(), 0);
  PerWorkerVariable seen({.name = "seen", .dtype = DType::kInt64});
  Function count = strategy.function([&] { seen.assign_add(current_worker_index() + 2); });
  strategy.run(count);
  strategy.run(count);
  EXPECT_EQ(counts(seen), (std::vector<std::int64_t>{4}));
  EXPECT_THROW(seen.assign(Tensor::zeros(DType::kInt64, {2})), InvalidArgumentError);
}

TEST(PerWorkerVariable, HoldsNoStrings) {
  OneDeviceStrategy strategy;
  auto scope = strategy.scope();
  const Tensor names = Tensor::strings({2}, {"a", "b"});
  EXPECT_THROW(PerWorkerVariable({.name = "seen",
                                  .dtype = DType::kString,
                                  .shape = {2},
                                  .initializer = Initializer::from(names)}),
               InvalidArgumentError);
}

TEST(PerWorkerVariable, IsRefusedWhereWorkersAreInStep) {
  const auto errors = testing::on_workers(2, [](MultiWorkerMirroredStrategy& strategy) {
    auto scope = strategy.scope();
    EXPECT_EQ(current_worker_index().eval().item<std::int64_t>(), strategy.id_in_cluster());
    EXPECT_THROW(PerWorkerVariable({.name = "seen"}), UnimplementedError);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

// The table's keys and values travel with the function, and every worker has its own copy.
TEST(StaticHashTable, IsLookedUpOnWorkers) {
  SimulatedCluster cluster({.ps = 1, .workers = 2});
  ClusterCoordinator coordinator(cluster.strategy());
  const StaticHashTable table({Tensor::strings({2}, {"no", "yes"}),
                               Tensor::of<float>({2}, std::vector<float>{0, 1}),
                               Tensor::scalar(0.5f)});
  Function look = cluster.strategy().function([&](Array keys) { return table.lookup(keys); });
  std::vector<RemoteValue> found;
  for (int i = 0; i < 10; ++i)
    found.push_back(coordinator.schedule(look, {Tensor::strings({3}, {"yes", "maybe", "no"})}));
  for (const RemoteValue& one : found)
    EXPECT_TRUE(
        std::ranges::equal(one.get(kPatience).values<float>(), std::vector<float>{1, 0.5f, 0}));
}

}  // namespace
}  // namespace cairn
