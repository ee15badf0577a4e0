#include "nn/layers/sequential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/exec/local_runtime.h"
#include "core/graph/ops.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/dense.h"
#include "nn/layers/embedding.h"
#include "nn/layers/normalization.h"
#include "nn/layers/shaping.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

using ::testing::ElementsAre;

class SequentialModel : public ::testing::Test {
 protected:
  LocalRuntime runtime_;
  Scope scope_{runtime_};
  const Array x_ = floats({1, 2}, {1, -2});
};

std::vector<std::string> names_of(const std::vector<Variable>& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

std::vector<std::string> names_of(const std::vector<LayerSummary>& lines) {
  std::vector<std::string> names;
  for (const LayerSummary& line : lines) names.push_back(line.name);
  return names;
}

TEST_F(SequentialModel, CallsItsLayersOneAfterAnother) {
  Sequential model({Dense({.units = 2, .kernel_initializer = "ones"}), relu,
                    [](const Array& x) { return x + 1.0f; }, activation("linear")});
  expect_close(model(x_), {1, 1});
  expect_close(model(floats({1, 2}, {3, 4})), {8, 8});
}

TEST_F(SequentialModel, NamesLayersByKindAndLeavesChosenNames) {
  Sequential model({Dense({.units = 2}), Dense({.units = 2, .name = "dense_1"}),
                    Dense({.units = 2}), Mlp({.units = {2, 1}}), relu});
  model(x_);
  EXPECT_THAT(names_of(model.summary()),
              ElementsAre("dense", "dense_1", "dense_2", "mlp", "lambda"));
  EXPECT_THAT(names_of(model.variables()),
              ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias",
                          "dense_2/kernel", "dense_2/bias", "mlp/dense_0/kernel",
                          "mlp/dense_0/bias", "mlp/dense_1/kernel", "mlp/dense_1/bias"));
}

TEST_F(SequentialModel, CountsNamesThroughModelsWithinModels) {
  const Sequential inner({Dense({.units = 2}), Dropout(0.5f)});
  Sequential model({Dense({.units = 2}), inner, Sequential({Dense({.units = 1})}, "head")});
  model(x_);
  EXPECT_THAT(names_of(model.summary()), ElementsAre("dense", "sequential", "head"));
  EXPECT_THAT(names_of(model.variables()),
              ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias",
                          "dense_2/kernel", "dense_2/bias"));
  EXPECT_THAT(names_of(inner.summary()), ElementsAre("dense_1", "dropout"));
}

TEST_F(SequentialModel, SharesALayerThatOccursTwice) {
  const Dense shared({.units = 2});
  Sequential model({shared, relu, shared});
  model(x_);
  EXPECT_THAT(names_of(model.variables()), ElementsAre("dense/kernel", "dense/bias"));
}

TEST_F(SequentialModel, SummarizesOutputsAndParametersOfTheLastCall) {
  Sequential model(
      {Embedding({.rows = 10, .dim = 3}), Flatten(), BatchNormalization(), Dense({.units = 1})});
  EXPECT_FALSE(model.summary()[0].output.has_value());
  EXPECT_EQ(model.summary()[3].parameters, 0);
  model(ids({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const auto lines = model.summary();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].output->shape, (Shape{5, 2, 3}));
  EXPECT_EQ(lines[0].parameters, 30);
  EXPECT_EQ(lines[1].output->shape, (Shape{5, 6}));
  EXPECT_EQ(lines[2].kind, "batch_normalization");
  EXPECT_EQ(lines[2].parameters, 24);
  EXPECT_EQ(lines[2].trainable_parameters, 12);
  EXPECT_EQ(lines[3].parameters, 7);
  EXPECT_EQ(lines[3].output->shape, (Shape{5, 1}));
}

TEST_F(SequentialModel, MayGrowByAdd) {
  Sequential model;
  EXPECT_THROW(model(x_), InvalidArgumentError);
  model.add(Dense({.units = 3}));
  model.add(Layer("shift", [](const Array& x) { return x + 1.0f; }));
  EXPECT_EQ(model(x_).shape(), (Shape{1, 3}));
  EXPECT_EQ(model.layers()[1].name(), "shift");
}

TEST_F(SequentialModel, RefusesEqualChosenNames) {
  Sequential model({Dense({.units = 1, .name = "head"}), Dense({.units = 1, .name = "head"})});
  EXPECT_THROW(model(x_), InvalidArgumentError);
  EXPECT_THROW(Layer("empty", nullptr), InvalidArgumentError);
}

TEST_F(SequentialModel, LeavesTheNamesOfLayersThatStandAlone) {
  Dense layer({.units = 1});
  layer(x_);
  EXPECT_THAT(names_of(layer.variables()), ElementsAre("dense/kernel", "dense/bias"));
}

}  // namespace
}  // namespace cairn::nn
