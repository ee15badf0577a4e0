#include "nn/optimizers/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/exec/local_runtime.h"
#include "core/graph/function.h"
#include "core/graph/ops.h"
#include "nn/layers/dense.h"
#include "nn/layers/embedding.h"
#include "nn/losses/losses.h"
#include "tests/nn/recording_creator.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

// One step of a traced function, as a strategy runs it.
template <typename F>
void run_step(LocalRuntime& runtime, std::int64_t step, F body) {
  ConcreteFunction function = trace(
      [&](const std::vector<TraceArgument>&) {
        return Outputs{{"", body()}};
      },
      {});
  Workspace workspace;
  StepContext context{.global_step = step};
  run(make_plan(function.graph, runtime.bind(function)), workspace, runtime.store(), context, {},
      {});
}

TEST(Minimize, TakesOneStepDownTheGradientAndCountsIt) {
  LocalRuntime runtime;
  Scope scope(runtime);
  Variable w = make_variable("w", floats({2}, {1, -2}));
  Sgd optimizer({.learning_rate = 0.1f});
  optimizer.minimize(sum(square(w.read())));
  expect_close(w.read(), {0.8f, -1.6f});
  EXPECT_EQ(optimizer.iterations().read().eval().item<std::int64_t>(), 1);
  EXPECT_EQ(optimizer.iterations().name(), "sgd/iterations");
}

TEST(Minimize, LeavesRowsThatTheStepDidNotNameAlone) {
  Variable table = make_variable("table", floats({3, 1}, {1, 1, 1}));
  Sgd optimizer({.learning_rate = 0.5f});
  optimizer.minimize(sum(table.gather(ids({3}, {2, 0, 2}))));
  expect_close(table.read(), {0.5f, 1, 0});
}

TEST(Minimize, UpdatesOnlyTheVariablesItIsGiven) {
  Variable wide = make_variable("wide", floats({1}, {1})),
           deep = make_variable("deep", floats({1}, {1}));
  Sgd slow({.learning_rate = 0.1f, .name = "slow"}), fast({.learning_rate = 0.5f, .name = "fast"});
  Array loss = sum(wide.read() + deep.read());
  slow.minimize(loss, {wide});
  fast.minimize(loss, {deep});
  expect_close(wide.read(), {0.9f});
  expect_close(deep.read(), {0.5f});
}

TEST(Minimize, RefusesWhatIsNoScalarAndVariablesThatTheLossDoesNotReach) {
  Variable w = make_variable("w", floats({2}, {1, -2})),
           other = make_variable("other", floats({1}, {1}));
  Sgd optimizer;
  EXPECT_THROW(optimizer.minimize(square(w.read())), InvalidArgumentError);
  EXPECT_THROW(optimizer.minimize(Array(1.0f)), InvalidArgumentError);
  EXPECT_THROW(optimizer.minimize(sum(w.read()), {w, other}), InvalidArgumentError);
}

// Two optimizers that share a backward pass, as the wide and the deep part of a model do.
TEST(ApplyGradients, OfALossThatIsNotFiniteUpdateNothing) {
  LocalRuntime runtime;
  Scope scope(runtime);
  Variable good = make_variable("good", floats({2}, {1, 1}));
  Variable bad =
      make_variable("weights", floats({2}, {1, std::numeric_limits<float>::quiet_NaN()}));
  Sgd one({.name = "one"}), other({.name = "other"});
  try {
    run_step(runtime, 41, [&] {
      Array loss = sum(good.read()) + sum(bad.read());
      std::vector<VariableGradient> gradients = variable_gradients(loss);
      one.apply_gradients({gradients[0]});
      other.apply_gradients({gradients[1]});
      return loss;
    });
    ADD_FAILURE() << "it trained on";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("loss is nan at step 41"),
                                             testing::HasSubstr("\"weights\""),
                                             testing::HasSubstr("learning rate")));
  }
  expect_close(good.read(), {1, 1});
}

TEST(Minimize, StopsAtALossThatIsNotFiniteBeforeAnythingIsUpdated) {
  LocalRuntime runtime;
  Scope scope(runtime);
  Variable good = make_variable("good", floats({2}, {1, 1}));
  Variable bad =
      make_variable("weights", floats({2}, {1, std::numeric_limits<float>::quiet_NaN()}));
  Sgd optimizer;
  auto step = [&] {
    Array loss = sum(good.read()) + sum(bad.read());
    optimizer.minimize(loss);
    return loss;
  };
  try {
    run_step(runtime, 17, step);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    for (const char* part : {"loss", "step 17", "\"weights\""})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
  expect_close(good.read(), {1, 1});
  EXPECT_EQ(optimizer.iterations().read().eval().item<std::int64_t>(), 0);
}

TEST(Minimize, EvaluatesAScheduleFromTheStepsTaken) {
  Variable w = make_variable("w", floats({1}, {0}));
  Sgd optimizer(
      {.learning_rate = PiecewiseConstantDecay({.boundaries = {0}, .values = {1.0f, 0.25f}})});
  for (int i = 0; i < 3; ++i) optimizer.minimize(sum(w.read()));
  expect_close(w.read(), {-1.5f});  // 1 at step 0, then 0.25 twice
}

// Chen et al., arXiv:2302.06675: the step is the sign of 0.9 m + 0.1 g, and m becomes 0.99 m + 0.01
// g, of which a gradient against the average's way must be ten times as large to turn the step.
TEST(Lion, TakesStepsOfOneSizeInTheAveragesWay) {
  for (const Api api : {Api::kLegacy, Api::kKeras2}) {
    SCOPED_TRACE(api == Api::kLegacy);
    Variable table = make_variable("table", floats({3, 1}, {1, 1, 1}));
    Lion lion({.learning_rate = 0.125f, .api = api});
    const auto step = [&](std::int64_t row, float gradient) {
      lion.minimize(sum(table.gather(ids({1}, {row})) * Array(gradient)));
    };
    step(2, 1.0f);  // m = 0.01
    expect_close(table.read(), {1, 1, 0.875f});
    step(2, -0.08f);
    expect_close(table.read(), {1, 1, 0.75f});
    step(2, -0.2f);
    expect_close(table.read(), {1, 1, 0.875f});
    step(0, 2.0f);  // of rows that are not named, kKeras2 moves those that have an average
    expect_close(table.read(), {0.875f, 1, api == Api::kLegacy ? 0.875f : 0.75f});
  }
}

TEST(Optimizer, DeclaresSlotsForEachVariableItUpdates) {
  RecordingCreator creator;
  Scope scope(creator);
  Dense layer({.units = 1});
  Adagrad optimizer({.learning_rate = 0.1f, .initial_accumulator_value = 0.2f});
  ConcreteFunction made = trace(
      [&](const std::vector<TraceArgument>& arguments) {
        Array loss = mean(layer(std::get<Array>(arguments[0])));
        optimizer.minimize(loss);
        return Outputs{{"", loss}};
      },
      {TensorType{DType::kFloat32, {Shape::kUnknown, 3}}});
  ASSERT_EQ(creator.slots.size(), 2u);
  EXPECT_EQ(creator.slots[0].first, "dense/kernel");
  EXPECT_EQ(creator.slots[0].second.kind, RuleKind::kAdagrad);
  EXPECT_FLOAT_EQ(creator.slots[0].second.constants[0], 0.2f);
  EXPECT_TRUE(made.graph.updates_variables());
}

TEST(Optimizer, CountsStepsWithoutForcingTheFunctionToRunAtDepthOne) {
  RecordingCreator creator;
  Scope scope(creator);
  Dense layer({.units = 1});
  Sgd optimizer;
  ConcreteFunction made = trace(
      [&](const std::vector<TraceArgument>& arguments) {
        optimizer.minimize(mean(layer(std::get<Array>(arguments[0]))));
        return Outputs{};
      },
      {TensorType{DType::kFloat32, {Shape::kUnknown, 3}}});
  EXPECT_FALSE(made.graph.assigns());
}

TEST(Optimizer, WarnsOnceOfATableRuleThatMovesALargeTableAtEveryStep) {
  std::vector<std::string> lines;
  log_to([&](LogLevel, const std::string& line) { lines.push_back(line); });
  RecordingCreator creator;
  Scope scope(creator);
  auto step = [](const Optimizer& optimizer, const std::string& name, std::int64_t rows) {
    Embedding table({.name = name, .rows = rows, .dim = 1});
    trace(
        [&](const std::vector<TraceArgument>&) {
          optimizer.minimize(sum(table(ids({1}, {0}))));
          return Outputs{};
        },
        {});
  };
  Adam adam;
  LazyAdam lazy;
  step(adam, "small", kLargeTableRows);
  step(lazy, "rows", kLargeTableRows + 1);
  EXPECT_THAT(lines, ::testing::IsEmpty());
  for (int i = 0; i < 2; ++i) step(adam, "large", kLargeTableRows + 1);
  log_to(nullptr);
  EXPECT_THAT(lines, ::testing::ElementsAre(::testing::HasSubstr("\"large")));
}

TEST(Optimizer, RefusesOptionsOutOfRange) {
  EXPECT_THROW(Sgd({.learning_rate = -1.0f}), InvalidArgumentError);
  EXPECT_THROW(Sgd({.nesterov = true}), InvalidArgumentError);
  EXPECT_THROW(Adam({.beta_1 = 1.0f}), InvalidArgumentError);
  EXPECT_THROW(Ftrl({.learning_rate_power = 0.5f}), InvalidArgumentError);
  EXPECT_THROW(Sgd({.clipping = {.clipnorm = 1.0f, .global_clipnorm = 1.0f}}),
               InvalidArgumentError);
  EXPECT_THROW(Sgd({.clipping = {.clipvalue = 0.0f}}), InvalidArgumentError);
}

// Points on a line through the plane, with a category that shifts it: learnable by every optimizer.
float loss_after_training(const Optimizer& optimizer, int steps) {
  Tensor x = floats({6, 2}, {1, 2, -1, 0.5f, 2, -1, -2, -2, 0.5f, 1, -0.5f, -1});
  Tensor category = ids({6}, {0, 1, 0, 1, 2, 2});
  Tensor y = floats({6}, {1, 0, 1, 0, 1, 0});
  Dense linear({.units = 1});
  Embedding shift({.name = "shift", .rows = 3, .dim = 1});
  auto loss = [&] { return mean(sigmoid_cross_entropy(linear(x) + shift(category), y)); };
  float first = loss().eval().item<float>();
  for (int i = 0; i < steps; ++i) optimizer.minimize(loss());
  return loss().eval().item<float>() / first;
}

TEST(Optimizer, EveryOneLowersTheLossOfALogisticRegression) {
  EXPECT_LT(loss_after_training(Sgd({.learning_rate = 0.5f}), 40), 0.3f);
  EXPECT_LT(
      loss_after_training(Sgd({.learning_rate = 0.2f, .momentum = 0.9f, .nesterov = true}), 40),
      0.3f);
  EXPECT_LT(loss_after_training(Adagrad({.learning_rate = 0.5f}), 40), 0.3f);
  EXPECT_LT(loss_after_training(Adam({.learning_rate = 0.1f}), 40), 0.3f);
  EXPECT_LT(loss_after_training(LazyAdam({.learning_rate = 0.1f}), 40), 0.3f);
  EXPECT_LT(loss_after_training(Ftrl({.learning_rate = 0.5f}), 40), 0.3f);
}

}  // namespace
}  // namespace cairn::nn
