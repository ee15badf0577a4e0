// The options of layers: initializers and activations by name, regularizers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/exec/local_runtime.h"
#include "core/graph/ops.h"
#include "nn/base/initializers.h"
#include "nn/layers/activations.h"
#include "nn/layers/dense.h"
#include "nn/layers/embedding.h"
#include "nn/layers/regularizers.h"
#include "nn/losses/added_losses.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

using ::testing::HasSubstr;

template <typename F>
std::string refusal(F call) {
  try {
    call();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST(ActivationByName, IsTheFunctionOfThatName) {
  const Array x = floats({3}, {-3, 0, 1});
  for (const char* name : {"relu", "relu6"}) expect_close(activation(name)(x), {0, 0, 1});
  expect_close(activation("linear")(x), {-3, 0, 1});
  expect_close(activation("tanh")(x), numbers(tanh(x)));
  expect_close(activation("hard_sigmoid")(x), {0, 0.5f, 0.7f});
  expect_close(activation("softsign")(x), {-0.75f, 0, 0.5f});
  expect_close(activation("silu")(x), numbers(x * sigmoid(x)));
  expect_close(activation("softmax")(floats({1, 2}, {0, std::log(3.0f)})), {0.25f, 0.75f});
}

TEST(ActivationByName, IsAnOptionOfALayer) {
  LocalRuntime runtime;
  Scope scope(runtime);
  Dense layer({.units = 1, .activation = "relu", .kernel_initializer = "ones"});
  expect_close(layer(floats({2, 2}, {1, 2, -1, -2})), {3, 0});
}

TEST(ActivationByName, NamesTheNearestOneIfThereIsNoneOfThatName) {
  EXPECT_THAT(refusal([] { activation("rellu"); }), HasSubstr("did you mean \"relu\"?"));
  EXPECT_THAT(refusal([] { activation("quantum"); }), HasSubstr("there are: elu"));
}

TEST(InitializerByName, ScalesWithTheFansAsTheReferenceDoes) {
  using Kind = Initializer::Kind;
  const auto of = [](const char* name) { return initializer(name)(8, 4, 3); };
  EXPECT_EQ(of("glorot_uniform").kind, Kind::kUniform);
  EXPECT_FLOAT_EQ(of("glorot_uniform").b, std::sqrt(0.5f));
  EXPECT_FLOAT_EQ(of("he_uniform").b, std::sqrt(0.75f));
  EXPECT_FLOAT_EQ(of("he_uniform").a, -std::sqrt(0.75f));
  EXPECT_FLOAT_EQ(of("lecun_uniform").b, std::sqrt(0.375f));
  for (const char* name : {"glorot_normal", "he_normal", "lecun_normal", "truncated_normal"})
    EXPECT_EQ(of(name).kind, Kind::kTruncatedNormal) << name;
  EXPECT_FLOAT_EQ(of("he_normal").b, 0.5f / 0.87962566f);
  EXPECT_FLOAT_EQ(of("glorot_normal").b, std::sqrt(1 / 6.0f) / 0.87962566f);
  EXPECT_FLOAT_EQ(of("lecun_normal").b, std::sqrt(0.125f) / 0.87962566f);
  EXPECT_FLOAT_EQ(of("random_normal").b, 0.05f);
  EXPECT_FLOAT_EQ(of("random_uniform").a, -0.05f);
  EXPECT_EQ(of("random_normal").seed, 3u);
  EXPECT_EQ(of("zeros").kind, Kind::kZeros);
  EXPECT_FLOAT_EQ(of("ones").a, 1);
  EXPECT_FLOAT_EQ(constant(2.5f)(8, 4, 0).a, 2.5f);
  EXPECT_THAT(refusal([] { initializer("he_norma"); }), HasSubstr("\"he_normal\""));
}

TEST(Orthogonal, HasOrthonormalRowsOrColumnsAndDependsOnItsSeedAlone) {
  const Array wide = orthogonal(2, 5, 7).value, tall = orthogonal(5, 2, 7).value;
  expect_close(matmul(wide, wide, false, true), {1, 0, 0, 1});
  expect_close(matmul(tall, tall, true, false), {1, 0, 0, 1});
  EXPECT_EQ(numbers(wide), numbers(Array(orthogonal(2, 5, 7).value)));
  EXPECT_NE(numbers(wide), numbers(Array(orthogonal(2, 5, 8).value)));
  EXPECT_THROW(orthogonal(0, 3), InvalidArgumentError);
}

float total(const AddedLosses& added) {
  float sum = 0;
  for (const Array& term : added.terms()) sum += term.eval().item<float>();
  return sum;
}

TEST(Regularizers, PenalizeAbsoluteValuesAndSquares) {
  const Array x = floats({2}, {-3, 1});
  expect_close(l1(0.5f)(x), {2});
  expect_close(l2(0.5f)(x), {5});
  expect_close(l1_l2(0.5f, 0.1f)(x), {3});
  EXPECT_THROW(l2(-1), InvalidArgumentError);
  EXPECT_THROW(l1(std::numeric_limits<float>::quiet_NaN()), InvalidArgumentError);
}

TEST(Regularizers, OfADenseLayerAddWeightsOnceAndOutputsAtEachCall) {
  LocalRuntime runtime;
  Scope scope(runtime);
  Dense layer({.units = 1,
               .kernel_initializer = "ones",
               .bias_initializer = Initializer::constant(2),
               .kernel_regularizer = l2(1),
               .bias_regularizer = l1(10),
               .activity_regularizer = l1(100)});
  AddedLosses added;
  layer(floats({2, 2}, {1, 1, 2, 2}));  // 4 and 6
  ASSERT_EQ(added.terms().size(), 3u);
  EXPECT_FLOAT_EQ(total(added), 2 + 20 + 100 * (4 + 6) / 2.0f);
  layer(floats({1, 2}, {0, 0}));  // 2
  ASSERT_EQ(added.terms().size(), 4u);
  EXPECT_FLOAT_EQ(total(added), 2 + 20 + 500 + 200);
}

TEST(Regularizers, OfAnEmbeddingSeeTheRowsOfTheBatchAlone) {
  LocalRuntime runtime;
  Scope scope(runtime);
  Embedding table({.rows = 4,
                   .dim = 1,
                   .combiner = Combiner::kSum,
                   .initializer = Initializer::from(floats({4, 1}, {1, 2, 3, 1000})),
                   .rows_regularizer = l2(1),
                   .activity_regularizer = l1(1)});
  AddedLosses added;
  table(ids({2, 2}, {0, 1, 1, 2}));  // 3 and 5
  EXPECT_FLOAT_EQ(total(added), (1 + 4 + 4 + 9) / 2.0f + (3 + 5) / 2.0f);
  AddedLosses of_bags;
  table(ids({3}, {0, 1, 2}), ids({3}, {0, 3, 3}));  // 6 and 0
  EXPECT_FLOAT_EQ(total(of_bags), (1 + 4 + 9) / 2.0f + 6 / 2.0f);
}

TEST(Dense, TakesSequencesAndMapsTheirLastAxis) {
  LocalRuntime runtime;
  Scope scope(runtime);
  Dense layer({.units = 1, .kernel_initializer = "ones"});
  const Array y = layer(floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 1}));
  expect_close(y, {3, 7, 11, 15});
  EXPECT_THROW(layer(floats({2}, {1, 2})), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
