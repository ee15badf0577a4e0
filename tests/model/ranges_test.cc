// Predictions that are logits, and labels and predictions outside of the range of a loss or metric.
#include <gmock/gmock.h>

#include <array>

#include "core/graph/ops.h"
#include "tests/model/small_models.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using testing::column;
using ::testing::HasSubstr;
using testing::kInProcess;
using testing::refusal;

const std::vector<MetricChoice> kOfProbabilities = {
    "auc", "pr_auc", "logloss", "accuracy", "recall", "binary_crossentropy", "calibration"};

const Tensor& six_logits() {
  static const Tensor logits = column({-6, -3, 2, 3, 4, 5});
  return logits;
}
const Tensor& six_labels() {
  static const Tensor labels = column({0, 0, 0, 1, 0, 1});
  return labels;
}

// One weight of 1, which multiplies the column x.
struct Scaled {
  nn::Dense dense{{.units = 1, .use_bias = false, .kernel_initializer = Initializer::constant(1)}};
};

nn::Loss binary(bool from_logits) {
  return {"binary_crossentropy", nn::LossOptions{.from_logits = from_logits}};
}

Logs evaluated(bool from_logits) {
  Scaled scaled;
  Model model([&](const Array& x) {
    const Array logits = scaled.dense(x);
    return from_logits ? logits : sigmoid(logits);
  });
  model.compile({.loss = binary(from_logits), .metrics = kOfProbabilities});
  return model.evaluate(six_logits(), six_labels(), {.batch_size = 4});
}

void expect_equal(const Logs& got, const Logs& wanted) {
  for (const auto& [name, value] : wanted) EXPECT_NEAR(got.at(name), value, 1e-5) << name;
}

TEST(MetricsOfLogits, AreThoseOfTheProbabilitiesUnderEveryStrategyOfOneProcess) {
  for (const std::string& name : kInProcess) {
    SCOPED_TRACE(name);
    const auto strategy = make_strategy(name);
    const Scope scope = strategy->scope();
    const Logs logits = evaluated(true);
    EXPECT_NEAR(logits["auc"], 0.875, 1e-4);
    expect_equal(logits, evaluated(false));
  }
}

TEST(MetricsOfLogits, AreThoseOfTheProbabilitiesOnParameterServers) {
  SimulatedCluster cluster({.ps = 2, .workers = 2});
  const Scope scope = cluster.strategy().scope();
  const Logs logits = evaluated(true);
  EXPECT_NEAR(logits["auc"], 0.875, 1e-4);
  expect_equal(logits, evaluated(false));
}

TEST(MetricsOfLogits, AreThoseOfTheProbabilitiesWhileTraining) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  Scaled scaled;
  Model model([&](const Array& x) { return scaled.dense(x); });
  model.compile({.optimizer = nn::Sgd({.learning_rate = 0.0f}),
                 .loss = binary(true),
                 .metrics = kOfProbabilities});
  const History history = model.fit(
      six_logits(), six_labels(),
      {.validation_data =
           Dataset::from_tensor_slices({{"x", six_logits()}, {"y", six_labels()}}, "y").batch(4),
       .verbose = Verbose::kSilent});
  EXPECT_NEAR(history["auc"][0], 0.875, 1e-4);
  EXPECT_NEAR(history["val_auc"][0], 0.875, 1e-4);
  EXPECT_NEAR(history["logloss"][0], history["loss"][0], 1e-5);
}

TEST(MetricsOfLogits, OfClassesAreThoseOfTheSoftmax) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  const Tensor scores = Tensor::of<float>({2, 3}, std::vector<float>{2, -1, 0, 1, 3, -2});
  const Tensor labels = Tensor::of<float>({2, 3}, std::vector<float>{1, 0, 0, 0, 0, 1});
  std::array<Logs, 2> judged;
  for (const bool from_logits : {false, true}) {
    Model model([&](const Array& x) {
      if (from_logits) return x;
      return softmax(x);
    });
    model.compile({.loss = nn::Loss("categorical_crossentropy", {.from_logits = from_logits}),
                   .metrics = {"accuracy", "categorical_crossentropy", "kl_divergence",
                               nn::Precision({.class_id = 0})}});
    judged[from_logits ? 1 : 0] = model.evaluate(scores, labels);
  }
  expect_equal(judged[1], judged[0]);
  EXPECT_NEAR(judged[1]["categorical_crossentropy"], judged[1]["loss"], 1e-5);
}

TEST(MetricsOfLogits, OfSeveralOutputsAreThoseOfEachOnesLoss) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  Model model([&](const Features& features) {
    return Outputs{{"logit", features["x"]}, {"sure", sigmoid(features["x"])}};
  });
  model.compile({.outputs = {{"logit", {.loss = binary(true), .metrics = {"auc"}}},
                             {"sure", {.loss = binary(false), .metrics = {"auc"}}}}});
  const Logs judged = model.evaluate(six_logits(), six_labels());
  EXPECT_NEAR(judged["logit_auc"], 0.875, 1e-4);
  EXPECT_NEAR(judged["sure_auc"], 0.875, 1e-4);
}

// A loss of the program's own says what its predictions are.
TEST(MetricsOfLogits, OfALossOfOnesOwnAreAskedForByItsInput) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  const auto own = [](const Array& logits, const Array& label) {
    return nn::sigmoid_cross_entropy(logits, label);
  };
  Model model([](const Array& x) { return x * Array(1.0f); });
  model.compile({.loss = own, .metrics = {"auc"}});
  EXPECT_THAT(refusal([&] { model.evaluate(six_logits(), six_labels()); }),
              HasSubstr("metric \"auc\": a prediction is -6, outside of [0, 1]"));
  model.compile({.loss = nn::Loss("own", own, nn::LossInput::kLogits), .metrics = {"auc"}});
  EXPECT_NEAR(model.evaluate(six_logits(), six_labels())["auc"], 0.875, 1e-4);
}

// Accuracy by a threshold of scores, and what orders lists, take what the network gives.
TEST(MetricsOfLogits, ThatAreOfScoresStayAsTheyAre) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  Model model([](const Array& x) { return x * Array(1.0f); });
  model.compile(
      {.loss = binary(true),
       .metrics = {nn::BinaryAccuracy(0), nn::MeanMetric("mean", [](const Array& z, const Array&) {
                     return nn::per_example(z, "z");
                   })}});
  const Logs judged = model.evaluate(six_logits(), six_labels());
  EXPECT_NEAR(judged["binary_accuracy"], 4.0 / 6, 1e-6);
  EXPECT_NEAR(judged["mean"], 5.0 / 6, 1e-6);
}

// ---- what is outside of its range ----

struct Out {
  const char* loss;
  bool from_logits;
  Tensor prediction, label;
  const char* said;
};

const std::vector<Out>& outside() {
  const Tensor half = column({0.5f, 0.5f}), bad = column({0, 3});
  const Tensor two = Tensor::of<float>({1, 2}, std::vector<float>{0.5f, 0.5f});
  const Tensor twice = Tensor::of<float>({1, 2}, std::vector<float>{2, 0});
  const Tensor ids = Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{2});
  static const std::vector<Out> all = {
      {"binary_crossentropy", true, half, bad, "a label is 3"},
      {"binary_crossentropy", false, half, column({-1, 1}), "a label is -1"},
      {"binary_crossentropy", false, column({0.5f, -2}), column({0, 1}), "a prediction is -2"},
      {"binary_focal_crossentropy", true, half, bad, "a label is 3"},
      {"categorical_crossentropy", true, two, twice, "a label is 2"},
      {"categorical_crossentropy", false, Tensor::of<float>({1, 2}, std::vector<float>{-1, 2}), two,
       "a prediction is -1"},
      {"categorical_focal_crossentropy", false, two, twice, "a label is 2"},
      {"categorical_hinge", false, two, twice, "a label is 2"},
      {"sparse_categorical_crossentropy", false, two, ids, "a label is 2"},
      {"sparse_categorical_crossentropy", true, two, ids, "label 2 of example 0"},
      {"hinge", false, half, bad, "a label is 3"},
      {"squared_hinge", false, half, bad, "a label is 3"},
      {"poisson", false, half, column({1, -1}), "a label is -1"},
      {"kl_divergence", false, two, twice, "a label is 2"}};
  return all;
}

TEST(Ranges, ALabelOrAPredictionOutsideOfThatOfTheLossEndsTheStepAndChangesNothing) {
  for (const Out& one : outside()) {
    SCOPED_TRACE(str(one.loss, one.from_logits ? " of logits" : ""));
    OneDeviceStrategy strategy;
    const Scope scope = strategy.scope();
    const std::int64_t width = one.prediction.shape()[1];
    nn::Dense dense({.units = width, .kernel_initializer = "zeros"});
    Model model([&](const Array& x) { return x + dense(x); });
    model.compile(
        {.optimizer = "sgd", .loss = nn::Loss(one.loss, {.from_logits = one.from_logits})});
    const FitOptions quiet{.verbose = Verbose::kSilent};
    const std::string text = refusal([&] { model.fit(one.prediction, one.label, quiet); });
    EXPECT_THAT(text, HasSubstr(one.said));
    EXPECT_THAT(refusal([&] { model.evaluate(one.prediction, one.label); }), HasSubstr(one.said));
    for (const Tensor& weight : model.get_weights())
      for (const float value : weight.values<float>()) EXPECT_EQ(value, 0);
  }
}

TEST(Ranges, ALabelOutsideOfThatOfTheLossEndsTrainingUnderEveryStrategy) {
  const auto attempt = [](Strategy& strategy) {
    const Scope scope = strategy.scope();
    Scaled scaled;
    Model model([&](const Array& x) { return scaled.dense(x); });
    model.compile({.optimizer = "sgd", .loss = binary(true)});
    return refusal([&] {
      model.fit(six_logits(), column({0, 1, 0, 2, 0, 1}), {.verbose = Verbose::kSilent});
    });
  };
  const auto told = AllOf(HasSubstr("loss \"binary_crossentropy\": a label is 2"),
                          HasSubstr("outside of [0, 1]; this loss has labels 0 and 1"));
  for (const std::string& name : kInProcess) EXPECT_THAT(attempt(*make_strategy(name)), told);
  SimulatedCluster cluster({.ps = 2, .workers = 2});
  EXPECT_THAT(attempt(cluster.strategy()), told);
}

TEST(Ranges, AMetricOfProbabilitiesRefusesOthers) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  for (const MetricChoice& metric : kOfProbabilities) {
    Model model([](const Array& x) { return x * Array(1.0f); });
    model.compile({.loss = "mse", .metrics = {metric}});
    EXPECT_THAT(refusal([&] { model.evaluate(six_logits(), six_labels()); }),
                AllOf(HasSubstr(metric.get()->name()), HasSubstr("a prediction is -6")));
  }
  Model model([](const Array& x) { return x * Array(1.0f); });
  model.compile({.loss = "mse", .metrics = {"logloss"}});
  EXPECT_THAT(refusal([&] { model.evaluate(column({0.5f}), column({3})); }),
              HasSubstr("metric \"logloss\": a label is 3"));
}

// TerminateOnNaN looks for what is not finite, wherever it is found first.
TEST(Ranges, APredictionThatIsNotFiniteIsToldAsSuch) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  Model model([](const Array& x) { return log(x); });
  model.compile({.loss = "mse", .metrics = {"auc"}});
  EXPECT_THAT(refusal([&] { model.evaluate(column({-1}), column({1})); }),
              HasSubstr("metric \"auc\": a prediction is nan, not finite"));
}

}  // namespace
}  // namespace cairn
