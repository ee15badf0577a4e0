// BatchNormalization where several replicas, or workers of parameter servers, take a step together.
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "tests/nn/values.h"
#include "tests/strategy/in_sync_kinds.h"

namespace cairn::nn {
namespace {

template <typename Kind>
struct InSyncLayers : ::testing::Test {};
TYPED_TEST_SUITE(InSyncLayers, cairn::testing::InSyncKinds);

// Means 2 and 6, so their mean is 4; variances 1 and 4, so 2.5.
PerReplica two_batches() {
  return PerReplica(std::vector<Array>{floats({2, 1}, {1, 3}), floats({2, 1}, {4, 8})});
}

// Runs a step and waits for it: closures on a worker may overlap. Gives the first replica's result.
template <typename Arguments>
std::vector<float> run_and_wait(Strategy& strategy, Function& step, Arguments arguments) {
  const RunResult result = strategy.run(step, {arguments});
  const auto values = strategy.experimental_local_results(result[0])[0].template values<float>();
  return {values.begin(), values.end()};
}

TYPED_TEST(InSyncLayers, BatchNormalizationMovesOnceTowardsTheMeanOfTheReplicas) {
  auto owned = TypeParam::make(2, {.seed = 3, .check_replicas = true});
  Strategy& strategy = *owned;
  BatchNormalization layer({.momentum = 0.75f});
  Sgd optimizer({.learning_rate = 0.5f});
  Function step = strategy.function([&](Array x) {
    const TrainingScope training;
    const Array y = layer(x);
    optimizer.minimize(sum(y));
    return y;
  });
  const auto of_first = run_and_wait(strategy, step, two_batches());
  EXPECT_NEAR(of_first[0], -1, 1e-3f);  // by its own batch
  auto scope = strategy.scope();
  expect_close(layer.moving_mean().read(), {1});
  expect_close(layer.moving_variance().read(), {0.75f + 0.25f * 2.5f});
  expect_close(layer.variables()[1].read(), {-2});  // trained by the sum of the gradients
  run_and_wait(strategy, step, two_batches());
  expect_close(layer.moving_mean().read(), {0.75f + 0.25f * 4});
}

TYPED_TEST(InSyncLayers, BatchNormalizationOfOneReplicaMovesTowardsItsBatch) {
  auto owned = TypeParam::make(1);
  Strategy& strategy = *owned;
  BatchNormalization layer({.momentum = 0.75f});
  Function step = strategy.function([&](Array x) {
    const TrainingScope training;
    return layer(x);
  });
  Function judge = strategy.function([&](Array x) { return layer(x); });
  const Tensor batch = floats({2, 1}, {1, 3});
  for (int i = 0; i < 3; ++i) run_and_wait(strategy, step, batch);
  run_and_wait(strategy, judge, batch);
  auto scope = strategy.scope();
  expect_close(layer.moving_mean().read(), {2 * (1 - 0.75f * 0.75f * 0.75f)});
  expect_close(layer.moving_variance().read(), {1});
}

}  // namespace
}  // namespace cairn::nn
