#include "nn/layers/normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/exec/local_runtime.h"
#include "core/graph/ops.h"
#include "nn/base/training_scope.h"
#include "nn/optimizers/optimizer.h"
#include "tests/nn/numeric_gradient.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

class Normalization : public ::testing::Test {
 protected:
  LocalRuntime runtime_;
  Scope scope_{runtime_};
  // Channel 0 has mean 2 and variance 2/3, channel 1 mean 20 and variance 200/3.
  const Array rows_ = floats({3, 2}, {1, 10, 2, 20, 3, 30});
};

TEST_F(Normalization, OfALayerIsOverEachExamplesLastAxis) {
  LayerNormalization layer({.epsilon = 1e-6f});
  const float high = std::sqrt(1.5f);
  expect_close(layer(floats({2, 3}, {1, 2, 3, 10, 20, 30})), {-high, 0, high, -high, 0, high},
               1e-4f);
  EXPECT_EQ(layer.variables()[0].name(), "layer_normalization/gamma");
  LayerNormalization bare({.center = false, .scale = false});
  expect_close(bare(floats({1, 2}, {-3, 3})), {-1, 1}, 1e-3f);
  EXPECT_TRUE(bare.variables().empty());
  EXPECT_THROW(LayerNormalization({.epsilon = 0}), InvalidArgumentError);
  EXPECT_THROW(layer(rows_), InvalidArgumentError);  // built for 3
}

TEST_F(Normalization, OfABatchInTrainingUsesTheBatchAndMovesTheAveragesOnce) {
  BatchNormalization layer;
  const TrainingScope training;
  const Array y = layer(rows_);
  const float low = -1 / std::sqrt(2 / 3.0f + 1e-3f), low_1 = -10 / std::sqrt(200 / 3.0f + 1e-3f);
  expect_close(y, {low, low_1, 0, 0, -low, -low_1}, 1e-5f);
  numbers(y);  // computing it again moves nothing
  expect_close(layer.moving_mean().read(), {0.02f, 0.2f});
  expect_close(layer.moving_variance().read(), {0.99f + 0.01f * 2 / 3, 0.99f + 0.01f * 200 / 3},
               1e-5f);
  layer(rows_);
  expect_close(layer.moving_mean().read(), {0.99f * 0.02f + 0.02f, 0.99f * 0.2f + 0.2f});
}

TEST_F(Normalization, OfABatchOtherwiseUsesTheAveragesAndMovesNothing) {
  BatchNormalization layer({.momentum = 0});
  expect_close(layer(rows_), numbers(rows_ * Array(1 / std::sqrt(1.001f))));
  expect_close(layer.moving_mean().read(), {0, 0});
  {
    const TrainingScope training;
    layer(rows_);
  }
  expect_close(layer.moving_mean().read(), {2, 20});
  const float low = -1 / std::sqrt(2 / 3.0f + 1e-3f), low_1 = -10 / std::sqrt(200 / 3.0f + 1e-3f);
  expect_close(layer(rows_), {low, low_1, 0, 0, -low, -low_1}, 1e-5f);
}

// As the reference's fused kernel does.
TEST_F(Normalization, OfImagesMovesTheVarianceTowardsThatOfTheSample) {
  BatchNormalization layer({.momentum = 0});
  const TrainingScope training;
  layer(reshape(rows_, {1, 3, 1, 2}));
  expect_close(layer.moving_variance().read(), {1, 100}, 1e-5f);
}

TEST_F(Normalization, OfABatchHasFourVariablesOfWhichTwoAreTrained) {
  BatchNormalization layer({.name = "norm"});
  layer(rows_);
  std::vector<std::string> names;
  for (const Variable& variable : layer.variables())
    names.push_back(variable.name() + (variable.spec().trainable ? "" : " fixed"));
  EXPECT_EQ(names, (std::vector<std::string>{"norm/gamma", "norm/beta", "norm/moving_mean fixed",
                                             "norm/moving_variance fixed"}));
  BatchNormalization bare({.center = false, .scale = false});
  const TrainingScope training;
  EXPECT_EQ(bare(rows_).shape(), (Shape{3, 2}));
  EXPECT_EQ(bare.variables().size(), 2u);
  expect_close(bare.moving_mean().read(), {0.02f, 0.2f});
}

TEST_F(Normalization, OfABatchHasTheGradientsOfWhatItComputes) {
  Variable x = make_variable("x", varied({4, 2}));
  BatchNormalization layer;
  const TrainingScope training;
  layer(x.read());
  layer.variables()[0].assign(floats({2}, {0.5f, -2}));
  std::vector<Variable> wanted{x, layer.variables()[0], layer.variables()[1]};
  expect_gradients_as_differences([&] { return square(layer(x.read())); }, wanted, 2e-2f);
}

TEST_F(Normalization, OfABatchTrainsInOneStepWithTheMoves) {
  BatchNormalization layer;
  Sgd optimizer({.learning_rate = 0.5f});
  const TrainingScope training;
  optimizer.minimize(sum(layer(rows_)));
  expect_close(layer.variables()[1].read(), {-1.5f, -1.5f});
  expect_close(layer.moving_mean().read(), {0.02f, 0.2f});
}

TEST_F(Normalization, OfABatchThatIsNotFiniteLeavesTheAverages) {
  BatchNormalization layer;
  const TrainingScope training;
  const Array bad = floats({2, 1}, {1, std::numeric_limits<float>::infinity()});
  EXPECT_THROW(layer(bad), InvalidArgumentError);
  expect_close(layer.moving_mean().read(), {0});
  expect_close(layer.moving_variance().read(), {1});
}

TEST_F(Normalization, OfABatchRefusesWhatItCannotTake) {
  EXPECT_THROW(BatchNormalization({.momentum = 1.5f}), InvalidArgumentError);
  EXPECT_THROW(BatchNormalization({.epsilon = -1}), InvalidArgumentError);
  BatchNormalization layer;
  EXPECT_THROW(layer(floats({2}, {1, 2})), InvalidArgumentError);
  layer(rows_);
  EXPECT_THROW(layer(floats({1, 3}, {1, 2, 3})), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
