// A model that was trained under any strategy predicts alone as it does there, bit for bit.
#include <gmock/gmock.h>

#include "strategy/base/one_device_strategy.h"
#include "tests/model/loopback_cluster.h"
#include "tests/model/small_model.h"
#include "tests/strategy/in_sync/workers_in_step.h"
#include "tests/strategy/in_sync_kinds.h"

namespace cairn::testing {
namespace {

// Batches of 8 of the strategy are pieces of 8 / replicas.
void expect_same_alone(Strategy& strategy) {
  SmallSave small;
  train(strategy, small.model, small.examples());
  const SavedModel saved = small.save(strategy);
  const auto own = own_predictions(strategy, small.model, small.examples(), 8, 5);

  LoadedModel loaded = LoadedModel::load(small.path);

  const std::int64_t piece = 8 / strategy.num_replicas_in_sync();
  expect_equal_bits(loaded_predictions(loaded, loaded.examples({small.data}), piece), own);
  EXPECT_EQ(loaded.about().global_step, 12);
  EXPECT_EQ(loaded.about().parameters(), saved.parameters());
}

TEST(TrainedUnder, OneDevice) {
  OneDeviceStrategy strategy(3);
  expect_same_alone(strategy);
}

TEST(TrainedUnder, NoStrategyAtAll) { expect_same_alone(default_strategy()); }

TEST(TrainedUnder, MirroredReplicas) {
  MirroredStrategy strategy(logical_cpus(2));
  expect_same_alone(strategy);
}

TEST(TrainedUnder, CentralStorage) { expect_same_alone(*Central::make(2)); }

TEST(TrainedUnder, ParameterServersThatSplitVariables) {
  LoopbackCluster cluster(2, FixedShardsPartitioner(2));
  expect_same_alone(cluster.strategy());
}

// All save, and one of them writes.
TEST(TrainedUnder, WorkersInStep) {
  SmallSave small;
  std::vector<std::vector<Tensor>> own;
  EXPECT_THAT(on_workers(2,
                         [&](MultiWorkerMirroredStrategy& strategy) {
                           SmallModel model;
                           train(strategy, model, small.examples());
                           save_model(strategy, model.predict(strategy), input_of(small.examples()),
                                      {}, small.path);
                           auto mine = own_predictions(strategy, model, small.examples(), 8, 1);
                           if (strategy.is_chief()) own = std::move(mine);
                         }),
              ::testing::Each(""));
  LoadedModel loaded = LoadedModel::load(small.path);
  auto alone = loaded_predictions(loaded, small.examples(), 4);
  alone.resize(1);  // the chief's replica has the first piece
  expect_equal_bits(alone, own);
}

}  // namespace
}  // namespace cairn::testing
