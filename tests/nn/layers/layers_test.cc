#include <gmock/gmock.h>

#include "core/graph/function.h"
#include "core/graph/ops.h"
#include "nn/layers/dense.h"
#include "nn/layers/embedding.h"
#include "nn/layers/id_cross.h"
#include "nn/layers/interactions.h"
#include "nn/layers/wide.h"
#include "tests/nn/recording_creator.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

// The type of `body`'s result for these arguments, traced with `creator` in scope.
template <typename F>
TensorType traced_type(RecordingCreator& creator, const std::vector<TensorType>& arguments,
                       F body) {
  Scope scope(creator);
  TensorType type;
  std::vector<SignatureEntry> signature(arguments.begin(), arguments.end());
  trace(
      [&](const std::vector<TraceArgument>& values) {
        std::vector<Array> arrays;
        for (const TraceArgument& value : values) arrays.push_back(std::get<Array>(value));
        Array result = body(arrays);
        type = result.type();
        return Outputs{{"", result}};
      },
      signature);
  return type;
}

const TensorType kRows{DType::kFloat32, {Shape::kUnknown, 6}};
const TensorType kIds{DType::kInt64, {Shape::kUnknown}};
TensorType float_type(std::vector<std::int64_t> dims) {
  return {DType::kFloat32, Shape(std::move(dims))};
}

TEST(Dense, MakesKernelAndBiasFromTheFirstInputItSees) {
  RecordingCreator creator;
  Dense layer({.units = 4, .activation = relu, .name = "tower"});
  EXPECT_EQ(traced_type(creator, {kRows}, [&](auto& a) { return layer(a[0]); }),
            float_type({Shape::kUnknown, 4}));
  ASSERT_EQ(creator.specs.size(), 2u);
  EXPECT_EQ(creator.specs[0]->name, "tower/kernel");
  EXPECT_EQ(creator.specs[0]->shape, (Shape{6, 4}));
  EXPECT_EQ(creator.specs[0]->initializer.kind, Initializer::Kind::kUniform);
  EXPECT_EQ(creator.specs[1]->name, "tower/bias");
  EXPECT_EQ(creator.specs[1]->shape, (Shape{4}));
}

TEST(Dense, KeepsItsVariablesWhenTracedAgainAndMakesOthersInAnotherScope) {
  RecordingCreator first, second;
  Mlp tower({.units = {8, 1}});
  auto call = [&](auto& a) { return tower(a[0]); };
  traced_type(first, {kRows}, call);
  traced_type(first, {kRows}, call);
  EXPECT_EQ(first.specs.size(), 4u);
  traced_type(second, {kRows}, call);
  EXPECT_EQ(second.specs.size(), 4u);
  EXPECT_EQ(second.specs[2]->name, "mlp/dense_1/kernel");
  EXPECT_EQ(second.specs[2]->shape, (Shape{8, 1}));
}

TEST(Dense, RefusesOtherWidthsThanItWasBuiltFor) {
  RecordingCreator creator;
  Dense layer({.units = 4});
  traced_type(creator, {kRows}, [&](auto& a) { return layer(a[0]); });
  EXPECT_THROW(traced_type(creator, {float_type({Shape::kUnknown, 5})},
                           [&](auto& a) { return layer(a[0]); }),
               InvalidArgumentError);
  EXPECT_THROW(traced_type(creator, {kIds}, [&](auto& a) { return layer(a[0]); }),
               InvalidArgumentError);
  EXPECT_THROW(Dense({.units = 0}), InvalidArgumentError);
}

TEST(Dense, ComputesTheActivationOfTheAffineMap) {
  Dense layer({.units = 2,
               .activation = relu,
               .kernel_initializer = Initializer::from(floats({2, 2}, {1, 2, 3, 4})),
               .bias_initializer = Initializer::from(floats({2}, {-5, 1}))});
  expect_close(layer(floats({2, 2}, {1, 1, 2, 0})), {0, 7, 0, 5});
}

TEST(Mlp, LeavesTheLastLayerLinearUnlessToldOtherwise) {
  Mlp linear({.units = {1}, .name = "linear"});
  Mlp activated({.units = {1},
                 .activation = [](const Array& x) { return relu(x) + 7.0f; },
                 .last_linear = false,
                 .name = "activated"});
  Array x = floats({1, 1}, {0});
  expect_close(linear(x), {0});
  expect_close(activated(x), {7});
}

// Row i of the table is (i, 10 i).
Embedding counting_table(std::optional<Combiner> combiner) {
  return Embedding({.name = "table",
                    .rows = 4,
                    .dim = 2,
                    .combiner = combiner,
                    .initializer = Initializer::from(floats({4, 2}, {0, 0, 1, 10, 2, 20, 3, 30}))});
}

TEST(Embedding, LooksUpRowsAndKeepsTheShapeOfIds) {
  Embedding table = counting_table({});
  expect_close(table(ids({2}, {3, 1})), {3, 30, 1, 10});
  Array several = table(ids({1, 3}, {3, 1, 1}));
  EXPECT_EQ(several.shape(), (Shape{1, 3, 2}));
  expect_close(several, {3, 30, 1, 10, 1, 10});
}

TEST(Embedding, CombinesAFixedNumberOfIds) {
  Array of_two = ids({2, 2}, {1, 3, 2, 2});
  expect_close(counting_table(Combiner::kSum)(of_two), {4, 40, 4, 40});
  expect_close(counting_table(Combiner::kMean)(of_two), {2, 20, 2, 20});
  expect_close(counting_table(Combiner::kSqrtn)(of_two),
               {2.8284271f, 28.284271f, 2.8284271f, 28.284271f});
}

TEST(Embedding, CombinesRaggedIdsAndGivesZerosForNone) {
  Array values = ids({3}, {1, 3, 2});
  Array splits = ids({4}, {0, 2, 2, 3});
  expect_close(counting_table(Combiner::kSum)(values, splits), {4, 40, 0, 0, 2, 20});
  expect_close(counting_table(Combiner::kMean)(values, splits), {2, 20, 0, 0, 2, 20});
  expect_close(counting_table(Combiner::kSqrtn)(values, splits),
               {2.8284271f, 28.284271f, 0, 0, 2, 20});
}

TEST(Embedding, MultipliesTheVectorsOfBagsByTheirWeights) {
  const Ids bags{ids({3}, {0, 1, 2}), ids({3}, {0, 2, 3}), floats({3}, {2, 1, -1})};
  expect_close(counting_table(Combiner::kSum)(bags), {1, 10, -2, -20});
  expect_close(counting_table(Combiner::kMean)(bags), {0.5f, 5, -2, -20});
  EXPECT_THROW(counting_table({})(bags), InvalidArgumentError);
}

TEST(Embedding, RefusesIdsThatAreNotIntegersAndRaggedOnesWithoutACombiner) {
  RecordingCreator creator;
  Embedding table({.name = "t", .rows = 4, .dim = 2});
  EXPECT_THROW(traced_type(creator, {kRows}, [&](auto& a) { return table(a[0]); }),
               InvalidArgumentError);
  EXPECT_THROW(traced_type(creator, {kIds, kIds}, [&](auto& a) { return table(a[0], a[1]); }),
               InvalidArgumentError);
  EXPECT_THROW(Embedding({.name = "t", .rows = 0, .dim = 2}), InvalidArgumentError);
}

TEST(Embedding, RefusesAnIdOutsideTheTableWhenRun) {
  EXPECT_THROW(counting_table({})(ids({1}, {4})).eval(), InvalidArgumentError);
}

TEST(Wide, MakesOneTableForColumnsAndCrosses) {
  RecordingCreator creator;
  Wide wide({.columns = {{"a", 3}, {"b", 5}, {"c", 100}},
             .crosses = {{{"a", "b"}}, {{"b", "c"}, 64}},
             .use_bias = true});
  auto type = traced_type(creator, {kIds, kIds, kIds}, [&](auto& a) { return wide(a); });
  EXPECT_EQ(type, float_type({Shape::kUnknown, 1}));
  ASSERT_EQ(creator.specs.size(), 2u);
  EXPECT_EQ(creator.specs[0]->shape, (Shape{3 + 5 + 100 + 15 + 64, 1}));
  EXPECT_EQ(creator.specs[1]->name, "wide/bias");
}

TEST(Wide, SumsTheWeightsOfColumnsAndOfTheirCombination) {
  // Weights: a: 1 2; b: 10 20 30; a x b: 100 200 300 400 500 600.
  Wide wide({.columns = {{"a", 2}, {"b", 3}},
             .crosses = {{{"a", "b"}}},
             .initializer = Initializer::from(
                 floats({11, 1}, {1, 2, 10, 20, 30, 100, 200, 300, 400, 500, 600}))});
  expect_close(wide({ids({3}, {0, 1, 1}), ids({3}, {0, 0, 2})}), {111, 412, 632});
}

TEST(Wide, HashesACrossWithoutLeavingItsBuckets) {
  constexpr std::int64_t kBuckets = 8;
  std::vector<float> weights(40 + 40 + kBuckets, 0.0f);
  for (std::size_t i = 80; i < weights.size(); ++i) weights[i] = 1.0f;  // of the cross alone
  Wide wide({.columns = {{"a", 40}, {"b", 40}},
             .crosses = {{{"a", "b"}, kBuckets}},
             .initializer = Initializer::from(
                 Tensor::of<float>(Shape{static_cast<std::int64_t>(weights.size()), 1}, weights))});
  expect_close(wide({ids({4}, {0, 39, 39, 17}), ids({4}, {0, 0, 39, 23})}), {1, 1, 1, 1});
}

// Weights: a: 1 2; b: 10 20 30.
TEST(Wide, AddsUpTheWeightsOfBags) {
  Wide wide({.columns = {{"a", 2}, {.name = "b", .rows = 3, .bags = true}},
             .initializer = Initializer::from(floats({5, 1}, {1, 2, 10, 20, 30}))});
  const Ids a{ids({3}, {0, 1, 1})};
  Ids b{ids({4}, {2, 2, 0, 1}), ids({4}, {0, 3, 3, 4})};
  expect_close(wide({a, b}), {1 + 30 + 30 + 10, 2, 2 + 20});
  b.weights = floats({4}, {1, 0.5f, -1, 2});
  expect_close(wide({a, b}), {1 + 30 + 15 - 10, 2, 2 + 40});
}

TEST(Wide, OfBagsAloneRefusesAnIdOutsideItsColumn) {
  Wide wide({.columns = {{.name = "a", .rows = 2, .bags = true},
                         {.name = "b", .rows = 3, .bags = true}}});
  const Array splits = ids({2}, {0, 1});
  EXPECT_THROW(wide({Ids{ids({1}, {2}), splits}, Ids{ids({1}, {0}), splits}}).eval(),
               InvalidArgumentError);
}

TEST(Wide, NeverReadsANeighboursWeightForAnIdOutsideItsColumn) {
  Wide wide({.columns = {{"a", 2}, {"b", 3}}});
  EXPECT_THROW(wide({ids({1}, {2}), ids({1}, {0})}).eval(), InvalidArgumentError);
  EXPECT_THROW(wide({ids({1}, {0}), ids({1}, {-1})}).eval(), InvalidArgumentError);
}

TEST(Wide, RefusesCrossesItCannotMake) {
  EXPECT_THROW(Wide({.columns = {{"a", 2}}, .crosses = {{{"a", "z"}}}}), InvalidArgumentError);
  EXPECT_THROW(Wide({.columns = {{"a", 2}}, .crosses = {{{"a"}}}}), InvalidArgumentError);
  EXPECT_THROW(Wide({.columns = {{"a", 2}, {.name = "b", .rows = 2, .bags = true}},
                     .crosses = {{{"a", "b"}}}}),
               InvalidArgumentError);
  EXPECT_THROW(Wide({.columns = {{"a", 1 << 20}, {"b", 1 << 20}}, .crosses = {{{"a", "b"}, 1000}}}),
               InvalidArgumentError);
}

TEST(IdCross, HasAnIdForEachCombinationOrAHashOfItBelowItsBuckets) {
  const std::vector<Array> columns = {ids({4}, {0, 0, 1, 1}), ids({4}, {0, 2, 0, 2})};
  const IdCross each({2, 3}, 0), enough({2, 3}, 6), fewer({2, 3}, 4);
  EXPECT_EQ(each.rows(), 6);
  EXPECT_EQ(enough.rows(), 6);
  EXPECT_EQ(fewer.rows(), 4);
  EXPECT_THAT(each(columns).eval().values<std::int64_t>(), testing::ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(fewer(columns).eval().values<std::int64_t>(), testing::Each(testing::Lt(4)));
  EXPECT_THROW(IdCross({2}, 4), InvalidArgumentError);
  EXPECT_THROW(IdCross({2, 0}, 4), InvalidArgumentError);
}

TEST(DotInteraction, PutsTheFirstVectorBeforeThePairwiseProducts) {
  std::vector<Array> vectors = {floats({1, 2}, {1, 2}), floats({1, 2}, {3, 4}),
                                floats({1, 2}, {5, 6})};
  // (v1 v0), (v2 v0), (v2 v1)
  expect_close(DotInteraction()(vectors), {1, 2, 11, 17, 39});
  expect_close(DotInteraction({.keep_first = false})(vectors), {11, 17, 39});
}

TEST(FactorizationMachine, SumsThePairwiseProducts) {
  std::vector<Array> vectors = {floats({2, 2}, {1, 2, 0, 0}), floats({2, 2}, {3, 4, 1, 1}),
                                floats({2, 2}, {5, 6, 2, -2})};
  const Array sums = FactorizationMachine()(vectors);
  EXPECT_EQ(sums.shape(), (Shape{2, 1}));
  expect_close(sums, {11 + 17 + 39, 0});
  EXPECT_THROW(factorization_machine({vectors[0]}), InvalidArgumentError);
}

TEST(CrossNetwork, MultipliesTheInputWithADenseLayerOfEachStage) {
  const Array x = floats({2, 2}, {1, 2, 3, 4});
  const CrossNetwork network({.layers = 2, .seed = 5}), copy = network;
  const Array crossed = network(x);
  const Array once = x * network.layers().at(0)(x) + x;
  expect_close(crossed, numbers(x * network.layers().at(1)(once) + once));
  expect_close(network(x), numbers(copy(x)));
  EXPECT_EQ(network(x).shape(), x.shape());
  EXPECT_THROW(CrossNetwork({.layers = 0}), InvalidArgumentError);
}

TEST(Cross, IsOneStageOfTheNetwork) {
  const Array x = floats({2, 2}, {1, 2, 3, 4});
  const Cross cross({.seed = 5});
  const Array crossed = cross(x);
  const std::vector<Variable> all = cross.variables();
  ASSERT_EQ(all.size(), 2u);
  expect_close(crossed, numbers(x * (matmul(x, all[0].read()) + all[1].read()) + x));
}

TEST(Cross, MixesThroughANarrowProjection) {
  const Array x0 = floats({1, 3}, {1, 2, 3}), x = floats({1, 3}, {4, 5, 6});
  const Cross cross({.projection_dim = 2});
  const Array crossed = cross(x0, x);
  const std::vector<Variable> all = cross.variables();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(all[1].shape(), (Shape{2, 3}));
  expect_close(crossed, numbers(x0 * (matmul(matmul(x, all[0].read()), all[1].read())) + x));
  EXPECT_THROW(cross(floats({1, 2}, {1, 2}), x), InvalidArgumentError);
  EXPECT_THROW(Cross({.projection_dim = -1}), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
