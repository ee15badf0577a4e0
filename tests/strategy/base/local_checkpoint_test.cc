// Checkpoints under one device: the same format as under parameter servers, and they restore each
// other's.
#include "strategy/base/local_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/exec/local_runtime.h"
#include "core/graph/ops.h"
#include "storage/checkpoint_folder.h"
#include "strategy/base/one_device_strategy.h"
#include "testing/simulated_cluster.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tools::TempFolder;

const UpdateRule kDenseRule{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}};
const UpdateRule kTableRule{RuleKind::kLazyAdam, {0.9f, 0.999f, 1e-7f}};

// A dense variable and a hashed table, both with slots, that train by themselves.
struct SlottedModel {
  Variable dense, table;
  explicit SlottedModel(VariableCreator& strategy) {
    dense = strategy.create_variable(
        {.name = "dense", .shape = {3}, .initializer = Initializer::uniform(-1, 1)});
    table = strategy.create_variable({.name = "table",
                                      .shape = {1 << 20, 2},
                                      .initializer = Initializer::uniform(-1, 1),
                                      .hashed = true});
    strategy.add_slots(dense, kDenseRule);
    strategy.add_slots(table, kTableRule);
  }
  Tensor ids() const {
    return Tensor::of<std::int64_t>({3}, std::vector<std::int64_t>{7, 900'000, 12});
  }
  void train() const {
    dense.update(kDenseRule, dense.read() + Array(1.0f), Array(0.1f));
    table.update(kTableRule, IndexedSlices{ids(), table.gather(ids()) + Array(1.0f), table.shape()},
                 Array(0.1f));
  }
  std::vector<float> values() const {
    std::vector<float> all;
    for (const Tensor& part :
         {dense.read().eval(), table.gather(ids()).eval(),
          table.gather(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{5})).eval()})
      all.insert(all.end(), part.values<float>().begin(), part.values<float>().end());
    return all;
  }
};

template <typename S>
void train_steps(S& strategy, const SlottedModel& model, int steps) {
  Function step = strategy.function([&model] { model.train(); });
  for (int i = 0; i < steps; ++i) strategy.run(step);
}

TEST(LocalCheckpoint, AnEvaluationOnTheWayIsNoStepAndABatchOfAStepIsOne) {
  OneDeviceStrategy strategy(3);
  SlottedModel model(strategy);
  train_steps(strategy, model, 2);
  Function look = strategy.function([&model] { return sum(model.dense.read()); });
  strategy.run(look);
  EXPECT_EQ(strategy.global_step(), 2);
  Function two = strategy.function([&model](Iterator input) {
    for (int i = 0; i < 2; ++i)
      model.dense.assign(model.dense.read() +
                         cast(sum(input.get_next().features["value"]), DType::kFloat32));
  });
  strategy.run(two, {strategy.iterate(Dataset::range(8).batch(2))});
  EXPECT_EQ(strategy.global_step(), 4);
}

TEST(LocalCheckpoint, RunsThatAreNoStepsDrawOtherRandomNumbersEachTime) {
  OneDeviceStrategy strategy(3);
  Function draw = strategy.function([] { return random_uniform({8}); });
  const Tensor first = strategy.run(draw).front(), second = strategy.run(draw).front();
  EXPECT_NE(first.values<float>()[0], second.values<float>()[0]);
}

TEST(LocalCheckpoint, TrainingGoesOnInTheSameBits) {
  TempFolder folder;
  OneDeviceStrategy whole(3), first(3), second(3);
  SlottedModel uninterrupted(whole), before(first);
  train_steps(whole, uninterrupted, 5);
  train_steps(first, before, 2);
  const std::string checkpoint = Checkpoint(first).save(folder.path());
  RestoreStatus status = Checkpoint(second).restore(checkpoint);
  SlottedModel after(second);  // made later: rows and slots are taken then
  status.assert_consumed();
  EXPECT_EQ(after.values(), before.values());
  train_steps(second, after, 3);
  EXPECT_EQ(after.values(), uninterrupted.values());
}

TEST(LocalCheckpoint, IsSoundAndNumbersGrow) {
  TempFolder folder;
  OneDeviceStrategy strategy;
  SlottedModel model(strategy);
  train_steps(strategy, model, 2);
  const std::string first = Checkpoint(strategy).save(folder.path()),
                    second = Checkpoint(strategy).save(folder.path());
  EXPECT_NE(first, second);
  const auto report = storage::verify(system_disk(), *storage::make_rocks_row_store(), second);
  EXPECT_TRUE(report.clean()) << ::testing::PrintToString(report.problems);
  EXPECT_EQ(report.rows, 6u);
  EXPECT_EQ(storage::read_manifest(system_disk(), second).global_step, 2);
}

TEST(LocalCheckpoint, OfTheDefaultStrategyRestoresUnderOneDevice) {
  TempFolder folder;
  Variable v = current_variable_creator().create_variable({.name = "of_the_default", .shape = {2}});
  v.assign(Array(Tensor::of<float>({2}, std::vector<float>{4, 5})));
  const std::string checkpoint = Checkpoint().save(folder.path());
  v.assign(v.read() * Array(0.0f));
  Checkpoint().restore(checkpoint).assert_consumed();
  EXPECT_THAT(v.read().eval().values<float>(), ElementsAre(4, 5));
  OneDeviceStrategy strategy;
  Checkpoint(strategy).restore(checkpoint);
  Variable same = strategy.create_variable({.name = "of_the_default", .shape = {2}});
  EXPECT_THAT(same.read().eval().values<float>(), ElementsAre(4, 5));
}

TEST(LocalCheckpoint, WhatCannotBeReadChangesNothing) {
  MemoryDisk disk;
  const LocalPlace place{disk, storage::make_memory_row_store(disk)};
  LocalRuntime runtime;
  Variable v = runtime.create_variable({.name = "v", .shape = {2}});
  const std::string checkpoint = save_local(runtime, place, {.folder = "/checkpoints"}, "{}", {});
  v.assign(v.read() + Array(3.0f));
  const std::string file = checkpoint + "/one-device/rows";
  disk.truncate(file, disk.size(file) / 2);
  EXPECT_THROW(restore_local(runtime, place, checkpoint), DataLossError);
  EXPECT_THAT(v.read().eval().values<float>(), ElementsAre(3, 3));
}

TEST(LocalCheckpoint, OfParameterServersRestoresOnOneDeviceAndBack) {
  SimulatedCluster cluster(
      {.ps = 2, .workers = 1, .strategy = {.partitioner = FixedShardsPartitioner(2), .seed = 3}});
  const LocalPlace place{cluster.disk(), storage::make_memory_row_store(cluster.disk())};
  LocalRuntime runtime;
  std::string checkpoint, on_one_device;
  std::vector<float> values;
  {
    SlottedModel model(cluster.strategy());
    train_steps(cluster.strategy(), model, 3);
    checkpoint = Checkpoint(cluster.strategy()).save("/checkpoints");
    values = model.values();
  }
  RestoreStatus status = restore_local(runtime, place, checkpoint).status;
  SlottedModel local(runtime);
  status.assert_consumed();
  EXPECT_EQ(local.values(), values);
  on_one_device = save_local(runtime, place, {.folder = "/local"}, "{}", {.global_step = 3});

  cluster.kill_chief();
  cluster.start_chief();
  RestoreStatus back = Checkpoint(cluster.strategy()).restore(on_one_device);
  SlottedModel again(cluster.strategy());
  back.assert_consumed();
  EXPECT_EQ(again.values(), values);
  EXPECT_EQ(ClusterCoordinator(cluster.strategy()).stats().global_step, 3);
}

// With the files that a base wrote, whose own folder is gone: a full checkpoint and two deltas.
TEST(LocalCheckpoint, ADeltaOfParameterServersRestoresByItself) {
  SimulatedCluster cluster(
      {.ps = 2, .workers = 1, .strategy = {.partitioner = FixedShardsPartitioner(2), .seed = 3}});
  const LocalPlace place{cluster.disk(), storage::make_memory_row_store(cluster.disk())};
  std::string checkpoint;
  std::vector<float> values;
  {
    SlottedModel model(cluster.strategy());
    for (int save = 0; save < 3; ++save) {
      train_steps(cluster.strategy(), model, 1 + save);
      const std::string before = checkpoint;
      checkpoint = cluster.strategy().save({.folder = "/checkpoints", .full_every = 5});
      if (!before.empty()) cluster.disk().remove_tree(before);
    }
    values = model.values();
  }
  EXPECT_EQ(storage::read_manifest(cluster.disk(), checkpoint).base, "ckpt-00000002");
  EXPECT_THAT(storage::verify(cluster.disk(), *place.store, checkpoint).problems, IsEmpty());
  LocalRuntime runtime;
  RestoreStatus status = restore_local(runtime, place, checkpoint).status;
  SlottedModel local(runtime);
  status.assert_consumed();
  EXPECT_EQ(local.values(), values);

  cluster.kill_chief();
  cluster.start_chief();
  RestoreStatus back = Checkpoint(cluster.strategy()).restore(checkpoint);
  SlottedModel again(cluster.strategy());
  back.assert_consumed();
  EXPECT_EQ(again.values(), values);
}

TEST(LocalCheckpoint, HoldsAllRowsAndSaysSoWhereDeltasAreAskedFor) {
  MemoryDisk disk;
  const LocalPlace place{disk, storage::make_memory_row_store(disk)};
  LocalRuntime runtime;
  try {
    save_local(runtime, place, {.folder = "/local", .full_every = 2}, "{}", {});
    FAIL() << "it was saved";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("full_every is 2"));
  }
}

TEST(LocalCheckpoint, OfAnotherShapeIsRefusedByNameUnlessItIsExpected) {
  MemoryDisk disk;
  const LocalPlace place{disk, storage::make_memory_row_store(disk)};
  LocalRuntime saved, runtime;
  saved.create_variable({.name = "v", .shape = {2}});
  const std::string checkpoint = save_local(saved, place, {.folder = "/checkpoints"}, "{}", {});
  RestoreStatus status = restore_local(runtime, place, checkpoint).status;
  try {
    runtime.create_variable({.name = "v", .shape = {3}});
    FAIL() << "it was made";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"v\" is float32[3], in the checkpoint float32[2]"));
  }
  status.expect_partial();
  EXPECT_EQ(runtime.create_variable({.name = "v", .shape = {3}}).name(), "v");
}

}  // namespace
}  // namespace cairn
