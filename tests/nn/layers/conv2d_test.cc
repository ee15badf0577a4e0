#include "nn/layers/conv2d.h"

#include <gtest/gtest.h>

#include "core/exec/local_runtime.h"
#include "core/graph/ops.h"
#include "nn/base/training_scope.h"
#include "nn/layers/shaping.h"
#include "nn/losses/added_losses.h"
#include "tests/nn/recording_creator.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

class ImageLayers : public ::testing::Test {
 protected:
  LocalRuntime runtime_;
  Scope scope_{runtime_};
  // One image of 3 x 3, one channel: 1 2 3 / 4 5 6 / 7 8 9.
  const Array image_ = floats({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
};

TEST_F(ImageLayers, ConvolutionSumsEachWindowByItsKernelAndAddsTheBias) {
  Conv2D layer({.filters = 1,
                .kernel_size = {2, 2},
                .activation = [](const Array& x) { return x * 2.0f; },
                .kernel_initializer = Initializer::from(floats({2, 2, 1, 1}, {1, 0, 0, 10})),
                .bias_initializer = Initializer::constant(0.5f),
                .kernel_regularizer = l1(1),
                .activity_regularizer = l1(1)});
  AddedLosses added;
  const Array y = layer(image_);
  EXPECT_EQ(y.shape(), (Shape{1, 2, 2, 1}));
  expect_close(y, {103, 125, 169, 191});
  ASSERT_EQ(added.terms().size(), 2u);
  expect_close(added.terms()[0], {11});
  expect_close(added.terms()[1], {103 + 125 + 169 + 191});
  EXPECT_EQ(layer.variables()[0].name(), "conv2d/kernel");
  EXPECT_EQ(layer.variables()[1].name(), "conv2d/bias");
}

TEST_F(ImageLayers, ConvolutionTakesStridesPaddingAndDilations) {
  const auto shape = [&](Conv2DOptions options) {
    options.filters = 2;
    return Conv2D(options)(image_).shape();
  };
  EXPECT_EQ(shape({.kernel_size = {3, 1}}), (Shape{1, 1, 3, 2}));
  EXPECT_EQ(shape({.kernel_size = {3, 3}, .strides = {2, 1}, .padding = Padding::kSame}),
            (Shape{1, 2, 3, 2}));
  EXPECT_EQ(shape({.kernel_size = {2, 2}, .dilations = {2, 2}}), (Shape{1, 1, 1, 2}));
}

TEST_F(ImageLayers, ConvolutionBeginsWithTheFansOfItsWindow) {
  RecordingCreator creator;
  Scope scope(creator);
  Conv2D layer({.filters = 8, .kernel_size = {3, 2}, .use_bias = false, .name = "edges"});
  // Another runtime is no matter: nothing is read.
  try {
    layer(floats({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  } catch (const FailedPreconditionError&) {
  }
  ASSERT_EQ(creator.specs.size(), 1u);
  EXPECT_EQ(creator.specs[0]->shape, (Shape{3, 2, 1, 8}));
  EXPECT_FLOAT_EQ(creator.specs[0]->initializer.b,
                  Initializer::glorot_uniform(3 * 2 * 1, 3 * 2 * 8).b);
}

TEST_F(ImageLayers, ConvolutionRefusesWhatItCannotTake) {
  EXPECT_THROW(Conv2D({.filters = 0, .kernel_size = {1, 1}}), InvalidArgumentError);
  EXPECT_THROW(Conv2D({.filters = 1}), InvalidArgumentError);
  EXPECT_THROW(Conv2D({.filters = 1, .kernel_size = {1, 1}, .strides = {0, 1}}),
               InvalidArgumentError);
  Conv2D layer({.filters = 1, .kernel_size = {1, 1}});
  EXPECT_THROW(layer(floats({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})), InvalidArgumentError);
  layer(image_);
  EXPECT_THROW(layer(floats({1, 1, 1, 2}, {1, 2})), InvalidArgumentError);
}

TEST_F(ImageLayers, PoolingTakesTheLargestOrTheMeanOfEachWindow) {
  const Pooling2DOptions by_one{.strides = {{1, 1}}};
  expect_close(MaxPooling2D(by_one)(image_), {5, 6, 8, 9});
  expect_close(AveragePooling2D(by_one)(image_), {3, 4, 6, 7});
  EXPECT_EQ(MaxPooling2D()(image_).shape(), (Shape{1, 1, 1, 1}));
  expect_close(AveragePooling2D({.padding = Padding::kSame})(image_), {3, 4.5f, 7.5f, 9});
  expect_close(GlobalAveragePooling2D()(image_), {5});
  EXPECT_EQ(GlobalAveragePooling2D()(image_).shape(), (Shape{1, 1}));
  EXPECT_THROW(MaxPooling2D({.pool_size = {0, 2}}), InvalidArgumentError);
  EXPECT_THROW(GlobalAveragePooling2D()(floats({1}, {1})), InvalidArgumentError);
}

TEST_F(ImageLayers, FlattenKeepsTheBatchAndJoinsTheRest) {
  EXPECT_EQ(Flatten()(image_).shape(), (Shape{1, 9}));
  EXPECT_EQ(Flatten()(floats({2}, {1, 2})).shape(), (Shape{2, 1}));
  EXPECT_THROW(Flatten()(Array(1.0f)), InvalidArgumentError);
}

TEST_F(ImageLayers, DropoutDropsInTrainingAloneAndKeepsTheMean) {
  Dropout layer(0.25f, 3);
  const Array x = Array(Tensor::of<float>(Shape{4000}, std::vector<float>(4000, 3.0f)));
  EXPECT_EQ(numbers(layer(x)), numbers(x));
  const TrainingScope training;
  int dropped = 0;
  for (const float value : numbers(layer(x))) {
    if (value == 0)
      ++dropped;
    else
      EXPECT_FLOAT_EQ(value, 4.0f);
  }
  EXPECT_NEAR(dropped, 1000, 150);
  EXPECT_THROW(Dropout(1.0f), InvalidArgumentError);
  EXPECT_THROW(Dropout(-0.1f), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
