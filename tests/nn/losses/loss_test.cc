#include "nn/losses/loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/graph/ops.h"
#include "nn/losses/losses.h"
#include "tests/nn/traced.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

using ::testing::HasSubstr;

template <typename F>
std::string refusal_of_loss(F call) {
  try {
    call();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "nothing was refused";
}

Array loss_of(const Loss& loss) { return loss(floats({2}, {0.8f, 0.3f}), floats({2}, {1, 0})); }

TEST(Loss, IsMadeFromANameOrAFunction) {
  EXPECT_EQ(Loss("mse").name(), "mean_squared_error");
  EXPECT_EQ(Loss(std::string("BinaryCrossentropy")).name(), "binary_crossentropy");
  expect_close(loss_of("mse"), {0.04f, 0.09f});
  expect_close(loss_of(mean_absolute_error), {0.2f, 0.3f});
  expect_close(
      loss_of([](const Array& prediction, const Array& label) { return prediction * 2 + label; }),
      {2.6f, 0.6f});
  const Loss named("twice", [](const Array& prediction, const Array&) { return prediction * 2; });
  const Loss copy = named;
  EXPECT_EQ(copy.name(), "twice");
  expect_close(loss_of(copy), {1.6f, 0.6f});
}

TEST(Loss, KnowsAllNamesOfKeras) {
  for (const char* name : {"mse",
                           "MSE",
                           "mean_squared_error",
                           "MeanSquaredError",
                           "mae",
                           "MAE",
                           "mape",
                           "MAPE",
                           "msle",
                           "MSLE",
                           "kld",
                           "KLD",
                           "kl_divergence",
                           "KLDivergence",
                           "log_cosh",
                           "logcosh",
                           "LogCosh",
                           "huber",
                           "Huber",
                           "huber_loss",
                           "poisson",
                           "hinge",
                           "squared_hinge",
                           "cosine_similarity",
                           "binary_crossentropy",
                           "bce",
                           "BCE"}) {
    for (float one : numbers(loss_of(name))) EXPECT_TRUE(std::isfinite(one)) << name;
    EXPECT_TRUE(is_loss_name(name));
  }
  Tensor rows = floats({1, 2}, {0.8f, 0.2f}), right = floats({1, 2}, {0, 1});
  expect_close(Loss("categorical_crossentropy")(rows, right), {-std::log(0.2f)});
  expect_close(Loss("categorical_hinge")(rows, right), {1.6f});
  expect_close(Loss("sparse_categorical_crossentropy")(rows, ids({1}, {1})), {-std::log(0.2f)});
  EXPECT_EQ(loss_names().size(), 17u);
  EXPECT_TRUE(std::is_sorted(loss_names().begin(), loss_names().end()));
  EXPECT_FALSE(is_loss_name("accuracy"));
}

TEST(Loss, TakesOptionsThatItHas) {
  Tensor logits = floats({2}, {0.5f, -2}), label = floats({2}, {1, 0});
  expect_close(Loss("bce", {.from_logits = true})(logits, label),
               numbers(sigmoid_cross_entropy(logits, label)));
  expect_close(Loss("bce", {.label_smoothing = 0.2f})(floats({1}, {0.8f}), floats({1}, {1})),
               {-0.9f * std::log(0.8f) - 0.1f * std::log(0.2f)}, 1e-5f);
  expect_close(Loss("huber", {.delta = 2})(floats({1}, {5}), floats({1}, {0})), {8});
  EXPECT_THAT(refusal_of_loss([] { Loss("mse", {.from_logits = true}); }),
              HasSubstr("mean_squared_error has no option from_logits"));
  EXPECT_THAT(
      refusal_of_loss([] { Loss("sparse_categorical_crossentropy", {.label_smoothing = 0.1f}); }),
      HasSubstr("label_smoothing"));
  EXPECT_THROW(Loss("bce", {.label_smoothing = 2}), InvalidArgumentError);
  EXPECT_THROW(Loss("huber", {.delta = 0}), InvalidArgumentError);
}

TEST(Loss, NamesTheNearestOfAnUnknownName) {
  EXPECT_THAT(refusal_of_loss([] { Loss("mean_square_error"); }),
              HasSubstr("\"mean_squared_error\"?"));
  EXPECT_THROW(Loss("mine", Loss::Function()), InvalidArgumentError);
  EXPECT_THROW(Loss()(floats({1}, {1}), floats({1}, {1})), FailedPreconditionError);
}

TEST(ReduceLoss, DividesAWeightedSumByTheNumberOfExamples) {
  Tensor values = floats({4, 1}, {1, 2, 3, 4}), weights = floats({4}, {1, 0, 2, 0});
  expect_close(reduce_loss(values), {2.5f});
  expect_close(reduce_loss(values, weights), {1.75f});
  expect_close(reduce_loss(values, weights, Reduction::kSum), {7});
  expect_close(reduce_loss(values, weights, Reduction::kNone), {1, 0, 6, 0});
  EXPECT_THROW(reduce_loss(values, floats({3}, {1, 1, 1})), InvalidArgumentError);
}

TEST(ClassWeights, GoByClassesAndByOneHotLabels) {
  const std::map<std::int64_t, float> weights = {{0, 0.5f}, {2, 3}};
  expect_close(class_weights(ids({4, 1}, {0, 1, 2, 7}), weights), {0.5f, 1, 3, 1});
  expect_close(class_weights(floats({2}, {2, 1}), weights), {3, 1});
  expect_close(class_weights(floats({2, 3}, {0, 0, 1, 1, 0, 0}), weights), {3, 0.5f});
  expect_close(class_weights(ids({2}, {0, 1}), {}), {1, 1});
  EXPECT_THROW(class_weights(ids({1}, {0}), {{0, -1.0f}}), InvalidArgumentError);
  EXPECT_THROW(class_weights(Array(), weights), InvalidArgumentError);
}

TEST(ClassWeights, WeighABatchOfUnknownSize) {
  auto weighted = [](const Array& prediction, const Array& label) {
    return reduce_loss(Loss("mse")(prediction, label), class_weights(label, {{1, 3}}));
  };
  Tensor loss = run_traced(weighted, floats({2}, {0.5f, 0.5f}), ids({2}, {1, 0}));
  expect_close(loss, {0.5f});
}

}  // namespace
}  // namespace cairn::nn
