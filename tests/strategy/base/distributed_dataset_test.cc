// DistributedDataset and DistributedIterator: batches that the program draws itself, and options.
#include "strategy/base/distributed_dataset.h"

#include <gmock/gmock.h>

#include "core/graph/ops.h"
#include "strategy/base/one_device_strategy.h"
#include "strategy/base/per_worker_variable.h"
#include "tests/strategy/in_sync_kinds.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::logical_cpus;

std::vector<std::vector<std::int64_t>> values(const DistributedElement& step) {
  std::vector<std::vector<std::int64_t>> of_replicas;
  for (const Element& element : step.of_replicas()) {
    const auto own = element.front().values<std::int64_t>();
    of_replicas.emplace_back(own.begin(), own.end());
  }
  return of_replicas;
}

std::vector<std::vector<std::vector<std::int64_t>>> all_of(const DistributedDataset& dataset) {
  std::vector<std::vector<std::vector<std::int64_t>>> steps;
  for (const DistributedElement& step : dataset) steps.push_back(values(step));
  return steps;
}

Dataset labelled() {
  return Dataset::from_tensor_slices(
      {{"x", Tensor::of<float>({4}, std::vector<float>{1, 2, 3, 4})},
       {"y", Tensor::of<float>({4}, std::vector<float>{10, 20, 30, 40})}},
      "y");
}

TEST(DistributedDataset, IsPassedOverByTheProgramItself) {
  MirroredStrategy strategy(logical_cpus(2));
  const auto batches = strategy.experimental_distribute_dataset(Dataset::range(5).batch(4));
  for (int pass = 0; pass < 2; ++pass)
    EXPECT_THAT(all_of(batches), ElementsAre(ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)),
                                             ElementsAre(ElementsAre(4), ElementsAre())));
}

TEST(DistributedDataset, GivesAStepItsValuesByReplica) {
  MirroredStrategy strategy(logical_cpus(2));
  Function step = strategy.function([](Array x, Array y) { return reduce_sum(x * y); });
  std::vector<float> sums;
  for (const DistributedElement& batch :
       strategy.experimental_distribute_dataset(labelled().batch(2))) {
    const RunResult products = strategy.run(step, {batch["x"], batch.label()});
    sums.push_back(strategy.reduce(ReduceOp::kSum, products[0]).item<float>());
  }
  EXPECT_THAT(sums, ElementsAre(50, 250));
}

TEST(DistributedDataset, IsTheDatasetItselfWithOneReplica) {
  OneDeviceStrategy strategy;
  const auto batches = strategy.experimental_distribute_dataset(labelled().batch(3));
  EXPECT_EQ(batches.element_spec(), labelled().batch(3).element_spec());
  std::vector<std::int64_t> sizes;
  for (const DistributedElement& batch : batches) {
    EXPECT_FALSE(batch["x"].is_per_replica());
    sizes.push_back(batch["x"].tensor().elements());
  }
  EXPECT_THAT(sizes, ElementsAre(3, 1));
}

TEST(DistributedDataset, NamesTheColumnThatItDoesNotHave) {
  OneDeviceStrategy strategy;
  DistributedIterator pass = strategy.iterate(Dataset::range(4).batch(2));
  const DistributedElement batch = pass.get_next();
  EXPECT_THROW(batch["vale"], InvalidArgumentError);
  EXPECT_THROW(batch.label(), FailedPreconditionError);
}

TEST(DistributedIterator, EndsAsOftenAsItIsAsked) {
  MirroredStrategy strategy(logical_cpus(2));
  DistributedIterator pass = strategy.iterate(Dataset::range(3).batch(4));
  EXPECT_THAT(values(pass.get_next()), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(pass.get_next(), OutOfRangeError);
    EXPECT_FALSE(pass.get_next_as_optional());
  }
}

TEST(DistributedIterator, IsOnePassForStepsAndProgram) {
  MirroredStrategy strategy(logical_cpus(2));
  Function step =
      strategy.function([](Iterator input) { return input.get_next().features["value"]; });
  DistributedIterator pass = strategy.iterate(Dataset::range(8).batch(4));
  strategy.run(step, {pass});
  EXPECT_THAT(values(pass.get_next()), ElementsAre(ElementsAre(4, 5), ElementsAre(6, 7)));
}

TEST(InputOptions, SayHowBatchesAreCut) {
  MirroredStrategy strategy(logical_cpus(2));
  const Dataset batches = Dataset::range(6).batch(4);
  EXPECT_THAT(all_of(strategy.experimental_distribute_dataset(batches)).back(),
              ElementsAre(ElementsAre(4), ElementsAre(5)));
  EXPECT_THAT(all_of(strategy.experimental_distribute_dataset(
                         batches, {.batch_splitter = BatchSplitter::kSizes}))
                  .back(),
              ElementsAre(ElementsAre(4, 5), ElementsAre()));
}

TEST(InputOptions, ReadAheadWhatIsReadAnyway) {
  MirroredStrategy strategy(logical_cpus(2));
  const Dataset batches = Dataset::range(20).batch(4);
  for (const BatchSplitter splitter : {BatchSplitter::kCut, BatchSplitter::kSizes})
    EXPECT_EQ(
        all_of(strategy.experimental_distribute_dataset(
            batches, {.batch_splitter = splitter, .experimental_per_replica_buffer_size = 2})),
        all_of(strategy.experimental_distribute_dataset(batches)));
}

TEST(InputOptions, AreRefusedWhereTheyContradictEachOther) {
  MirroredStrategy strategy(logical_cpus(2));
  const auto error_of = [&](const InputOptions& options) -> std::string {
    try {
      strategy.experimental_distribute_dataset(Dataset::range(6).batch(4), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of({.experimental_place_dataset_on_device = true}), HasSubstr("kPerReplica"));
  EXPECT_THAT(error_of({.experimental_per_replica_buffer_size = -1}), HasSubstr("at least 0"));
  EXPECT_THAT(error_of({.auto_shard_policy = AutoShardPolicy::kHint}), HasSubstr("shard_hint()"));
  EXPECT_THAT(error_of({.experimental_replication_mode = InputReplicationMode::kPerReplica}),
              HasSubstr("is not there"));
}

TEST(InputOptions, DealOutAPerWorkerDataset) {
  SimulatedCluster cluster({.ps = 1, .workers = 2});
  ClusterCoordinator coordinator(cluster.strategy());
  const auto batches =
      coordinator.create_per_worker_dataset(cluster.strategy().experimental_distribute_dataset(
          Dataset::range(4).batch(2).repeat(), {.auto_shard_policy = AutoShardPolicy::kData}));
  Function next = cluster.strategy().function([](Iterator input) {
    return std::vector<Array>{current_worker_index(),
                              reduce_sum(input.get_next().features["value"])};
  });
  for (int i = 0; i < 8; ++i) {
    const std::vector<Tensor> got = coordinator.schedule(next, {batches}).get_all();
    EXPECT_EQ(got[1].item<std::int64_t>(), got[0].item<std::int64_t>() == 0 ? 0 + 1 : 2 + 3);
  }
}

TEST(DistributedIterator, UnderParameterServersOnlyStepsTakeElements) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  DistributedIterator pass = cluster.strategy().iterate(Dataset::range(4).batch(2));
  EXPECT_THROW(pass.get_next(), FailedPreconditionError);
  Function next = cluster.strategy().function(
      [](Iterator input) { return reduce_sum(input.get_next().features["value"]); });
  EXPECT_EQ(cluster.strategy().run(next, {pass})[0].item<std::int64_t>(), 1);
}

}  // namespace
}  // namespace cairn
