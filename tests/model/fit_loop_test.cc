#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "model/saved/loaded_model.h"
#include "tests/model/small_models.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using testing::kInProcess;
using testing::LinearData;
using testing::LinearModel;

FitOptions quiet(std::int64_t epochs, std::int64_t batch_size) {
  return {.epochs = epochs, .batch_size = batch_size, .verbose = Verbose::kSilent};
}

float value(const Tensor& tensor, std::size_t i) { return tensor.values<float>()[i]; }

TEST(Fit, LearnsALineUnderEveryStrategyOfOneProcess) {
  for (const std::string& name : kInProcess) {
    SCOPED_TRACE(name);
    const auto strategy = make_strategy(name);
    const Scope scope = strategy->scope();
    LinearModel linear;
    const LinearData data(96);
    const History history = linear.model.fit(data.x, data.y, quiet(30, 16));
    EXPECT_EQ(history.epoch.size(), 30u);
    EXPECT_LT(history["loss"].back(), 1e-3);
    EXPECT_LT(history["mae"].back(), 0.03);
    EXPECT_NEAR(value(linear.model.get_weights()[0], 1), -2, 0.05);
    const Logs judged = linear.model.evaluate(data.x, data.y);
    EXPECT_LT(judged.at("loss"), 1e-3);
  }
}

TEST(Fit, LearnsALineOnParameterServers) {
  SimulatedCluster cluster({.ps = 2, .workers = 2});
  const Scope scope = cluster.strategy().scope();
  LinearModel linear;
  const LinearData data(96);
  const History history = linear.model.fit(data.x, data.y, quiet(30, 16));
  EXPECT_LT(history["loss"].back(), 1e-2);
  EXPECT_LT(linear.model.evaluate(data.x, data.y).at("loss"), 1e-2);
}

// Batches are shared by replicas in different ways, and mean the same; the last one of each epoch
// is not full.
TEST(Fit, GivesTheSameLossesHoweverABatchIsShared) {
  const LinearData data(27);
  std::vector<std::vector<double>> losses;
  for (const std::string& name : kInProcess) {
    const auto strategy = make_strategy(name);
    const Scope scope = strategy->scope();
    LinearModel linear;
    losses.push_back(linear.model.fit(data.x, data.y, quiet(4, 8))["loss"]);
  }
  for (std::size_t i = 0; i < losses[0].size(); ++i) {
    EXPECT_NEAR(losses[1][i], losses[0][i], 1e-5 * losses[0][i]);
    EXPECT_NEAR(losses[2][i], losses[0][i], 1e-5 * losses[0][i]);
  }
}

TEST(Fit, TakesSeveralStepsInOneExecutionWithTheSameResult) {
  const LinearData data(40);
  std::vector<Tensor> kernels;
  for (const std::int64_t steps : {1, 4}) {
    OneDeviceStrategy strategy;
    const Scope scope = strategy.scope();
    nn::Dense dense({.units = 1, .seed = 1});
    Model model([&](const Array& x) { return dense(x); });
    model.compile({.optimizer = nn::Sgd({.learning_rate = 0.1f}),
                   .loss = "mse",
                   .steps_per_execution = steps});
    model.fit(data.x, data.y, quiet(2, 4));  // ten steps: executions of four, four and two
    kernels.push_back(model.get_weights()[0]);
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(value(kernels[0], i), value(kernels[1], i));
}

TEST(Fit, JudgesTheValidationDataAsOftenAsItIsTold) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  LinearModel linear;
  const LinearData data(40);
  FitOptions options = quiet(4, 8);
  options.validation_split = 0.25;
  options.validation_freq = 2;
  const History history = linear.model.fit(data.x, data.y, options);
  EXPECT_TRUE(std::isnan(history["val_loss"][0]));
  EXPECT_FALSE(std::isnan(history["val_loss"][1]));
  EXPECT_LT(history["val_loss"][3], history["val_loss"][1]);
}

TEST(Fit, TellsSomeMetricsOfTheValidationDataAlone) {
  OneDeviceStrategy strategy;
  const auto scope = strategy.scope();
  nn::Dense dense({.units = 1, .seed = 1});
  Model model([&](const Array& x) { return dense(x); });
  model.compile({.optimizer = "sgd", .loss = "mse", .evaluation_metrics = {"mae"}});
  const LinearData data(64);
  const History history = model.fit(data.x, data.y, {.batch_size = 16, .validation_split = 0.25});
  EXPECT_FALSE(history.history.contains("mae"));
  EXPECT_GT(history["val_mae"][0], 0);
  EXPECT_GT(model.evaluate(data.x, data.y)["mae"], 0);
}

TEST(Fit, WeighsExamplesByTheirWeightAndByTheirClass) {
  const Tensor x = Tensor::zeros(DType::kFloat32, {4, 3});
  const Tensor y = Tensor::of<float>({4, 1}, std::vector<float>{0, 1, 0, 1});
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  LinearModel linear(0);  // the prediction stays 0, so that losses are 0, 1, 0, 1
  FitOptions options = quiet(1, 4);
  EXPECT_DOUBLE_EQ(linear.model.fit(x, y, options)["loss"][0], 0.5);
  options.class_weight = {{1, 3.0f}};
  EXPECT_DOUBLE_EQ(linear.model.fit(x, y, options)["loss"][0], 1.5);
  nn::Dense dense({.units = 1, .seed = 1});
  Model weighted([&](const Array& features) { return dense(features); });
  weighted.compile({.optimizer = nn::Sgd({.learning_rate = 0.0f}),
                    .loss = "mse",
                    .sample_weight = "sample_weight"});
  options.class_weight.clear();
  options.sample_weight = Tensor::of<float>({4}, std::vector<float>{1, 2, 1, 0});
  EXPECT_DOUBLE_EQ(weighted.fit(x, y, options)["loss"][0], 0.5);
}

TEST(Fit, AddsWhatLayersAddToTheLoss) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  Model model([&](const Array& x) {
    nn::add_loss("constant", Array(2.0f));
    return reduce_sum(x, {1}, true) * Array(0.0f) +
           nn::Dense({.units = 1, .kernel_initializer = Initializer::zeros()})(x);
  });
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor zeros = Tensor::zeros(DType::kFloat32, {4, 3});
  const Tensor labels = Tensor::zeros(DType::kFloat32, {4, 1});
  EXPECT_DOUBLE_EQ(model.fit(zeros, labels, quiet(1, 2))["loss"][0], 2.0);
}

TEST(Fit, JudgesSeveralOutputsEachByItsOwnLoss) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  nn::Dense sum({.units = 1, .name = "sum"}), other({.units = 1, .name = "other"});
  Model model([&](const Features& features) {
    return Outputs{{"sum", sum(features["x"])}, {"other", other(features["x"])}};
  });
  model.compile({.optimizer = nn::Sgd({.learning_rate = 0.1f}),
                 .outputs = {{"sum", {.loss = "mse"}},
                             {"other", {.loss = "mae", .loss_weight = 0.5f, .metrics = {"mse"}}}}});
  const LinearData data(32);
  const History history = model.fit(data.x, data.y, quiet(20, 8));
  EXPECT_NEAR(history["loss"].back(),
              history["sum_loss"].back() + 0.5 * history["other_loss"].back(), 1e-5);
  EXPECT_LT(history["sum_loss"].back(), 0.01);
  EXPECT_TRUE(history.history.contains("other_mse"));
}

TEST(Predict, GivesTheExamplesInTheirOrderUnderEveryStrategy) {
  const LinearData data(53);
  const auto expect_in_order = [&](Strategy& strategy) {
    const Scope scope = strategy.scope();
    Model model([](const Array& x) { return reduce_sum(x, {1}, true); });
    const Tensor sums = model.predict(data.x, 8);
    ASSERT_EQ(sums.shape(), Shape({53, 1}));
    const auto x = data.x.values<float>();
    for (std::size_t i = 0; i < 53; ++i)
      EXPECT_FLOAT_EQ(value(sums, i), x[3 * i] + x[3 * i + 1] + x[3 * i + 2]);
  };
  for (const std::string& name : kInProcess) expect_in_order(*make_strategy(name));
  SimulatedCluster cluster({.ps = 1, .workers = 3});
  expect_in_order(cluster.strategy());
}

TEST(Model, OnDiskPredictsTheSameBitsUnderEveryStrategy) {
  const LinearData data(40);
  const auto expect_equal = [&](Strategy& strategy) {
    const tools::TempFolder folder;
    const Scope scope = strategy.scope();
    nn::Sequential network({nn::Dense({.units = 8, .activation = nn::activation("relu")}),
                            nn::BatchNormalization(), nn::Dropout(0.5f), nn::Dense({.units = 1})});
    Model model([&](const Array& x) { return network(x); });
    model.compile({.optimizer = "adam", .loss = "mse"});
    model.fit(data.x, data.y, quiet(2, 8));
    const Tensor wanted = model.predict(data.x, 40);
    model.save(folder.path() + "/model");
    const std::vector<Tensor> got =
        LoadedModel::load(folder.path() + "/model").predict(Element{data.x});
    ASSERT_EQ(got.size(), 1u);
    for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(value(got[0], i), value(wanted, i));
  };
  for (const std::string& name : kInProcess) expect_equal(*make_strategy(name));
}

TEST(Model, SaysWhatWasForgotten) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  const LinearData data(8);
  nn::Dense dense({.units = 1});
  Model model([&](const Array& x) { return dense(x); }, "mine");
  const auto message = [&](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message([&] { model.fit(data.x, data.y); }).find("not compiled"), std::string::npos);
  EXPECT_NE(message([&] { model.get_weights(); }).find("not built"), std::string::npos);
  EXPECT_NE(message([&] { model.compile({.optimizer = "adm"}); }).find("\"adam\""),
            std::string::npos);
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Dataset examples = Dataset::from_tensor_slices({{"x", data.x}, {"y", data.y}}, "y");
  EXPECT_NE(message([&] { model.fit(examples); }).find("batch(n)"), std::string::npos);
  EXPECT_NE(message([&] { model.fit(examples.batch(4).repeat()); }).find("steps_per_epoch"),
            std::string::npos);
  const Dataset no_label = Dataset::from_tensor_slices({{"x", data.x}}).batch(4);
  EXPECT_NE(message([&] { model.fit(no_label); }).find("names no label"), std::string::npos);
}

// A prediction [b, 1] and a label [b] broadcast to a matrix.
TEST(Fit, RefusesALossThatHasNotOneNumberPerExample) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  const LinearData data(8);
  LinearModel linear;
  const auto refused = [&](CompileOptions options) -> std::string {
    linear.model.compile(std::move(options));
    try {
      linear.model.fit(data.x, data.y, quiet(1, 4));
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto as_row = [](const Array& label) { return reshape(label, {1, Shape::kUnknown}); };
  const std::string of_pairs =
      refused({.loss = nn::Loss("own", [&](const Array& prediction, const Array& label) {
                 return square(prediction - as_row(label));
               })});
  EXPECT_NE(of_pairs.find("the loss \"own\", of a prediction float32[?, 1]"), std::string::npos)
      << of_pairs;
  EXPECT_NE(of_pairs.find("one number per example"), std::string::npos) << of_pairs;
  const std::string of_all = refused(
      {.batch_loss = [](const Outputs& outputs, const Batch&) { return mean(outputs[0].second); }});
  EXPECT_NE(of_all.find("batch_loss must hold one number per example"), std::string::npos)
      << of_all;
  const std::string of_truths = refused({.batch_loss = [](const Outputs& outputs, const Batch&) {
    return outputs[0].second > 0.0f;
  }});
  EXPECT_NE(of_truths.find("batch_loss must be float32"), std::string::npos) << of_truths;
}

TEST(Model, ListsItsVariables) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  nn::Mlp tower({.units = {4, 1}});
  Model model([&](const Array& x) { return tower(x); });
  model.build({{{"x", {DType::kFloat32, {Shape::kUnknown, 3}}}}, ""});
  EXPECT_EQ(model.variables().size(), 4u);
  EXPECT_NE(model.summary().find("trainable parameters: 21, others: 0"), std::string::npos);
}

}  // namespace
}  // namespace cairn
