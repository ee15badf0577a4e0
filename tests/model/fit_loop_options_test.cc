// Every option of fit() and evaluate() works, or is refused, whatever the data is.
#include <gmock/gmock.h>

#include "core/graph/ops.h"
#include "model/saved/loaded_model.h"
#include "tests/model/small_models.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using testing::column;
using ::testing::HasSubstr;
using testing::kInProcess;
using testing::refusal;

const Tensor& four_x() {
  static const Tensor all = column({0, 0.25f, 0.5f, 0.75f});
  return all;
}
const Tensor& four_y() {
  static const Tensor all = column({0, 1, 0, 1});
  return all;
}
const Tensor& weights() {
  static const Tensor all = column({0, 0, 0, 5});
  return all;
}

Dataset batches() {
  return Dataset::from_tensor_slices({{"x", four_x()}, {"y", four_y()}}, "y").batch(4);
}

// Its prediction is 0 before the first step.
struct Zero {
  explicit Zero(CompileOptions options = {.optimizer = "sgd", .loss = "mse"})
      : model([this](const Features& features) { return dense(features["x"]); }) {
    model.compile(std::move(options));
  }
  nn::Dense dense{{.units = 1, .kernel_initializer = "zeros"}};
  Model model;
};

FitOptions by_four() { return {.batch_size = 4, .verbose = Verbose::kSilent}; }
FitOptions silent() { return {.verbose = Verbose::kSilent}; }

template <typename Options, typename Change>
Options with(Options options, Change change) {
  change(options);
  return options;
}

// ---- weights ----

TEST(FitOptions, SampleWeightOfArraysCountsUnderEveryStrategyWithoutAWordToCompile) {
  const auto expect_weighted = [](Strategy& strategy) {
    const Scope scope = strategy.scope();
    Zero zero({.optimizer = nn::Sgd({.learning_rate = 0.1f}), .loss = "mse", .metrics = {"mae"}});
    FitOptions options = by_four();
    options.sample_weight = weights();
    const History history = zero.model.fit(four_x(), four_y(), options);
    EXPECT_NEAR(history["loss"][0], 5.0 / 4, 1e-6);
    EXPECT_NEAR(history["mae"][0], 1, 1e-6);  // of the only example that weighs something
    EXPECT_NEAR(zero.model.get_weights()[1].values<float>()[0], 0.1f * 2 * 5 / 4, 1e-6f);
  };
  for (const std::string& name : kInProcess) expect_weighted(*make_strategy(name));
  SimulatedCluster cluster({.ps = 1, .workers = 2});
  expect_weighted(cluster.strategy());
}

TEST(FitOptions, SampleWeightIsOfTheExamplesThatAreHeldBackToo) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  Zero zero({.optimizer = nn::Sgd({.learning_rate = 0.0f}), .loss = "mse"});
  FitOptions options = by_four();
  options.sample_weight = column({1, 2, 3, 4});
  options.validation_split = 0.5;
  const History history = zero.model.fit(four_x(), four_y(), options);
  EXPECT_NEAR(history["loss"][0], (0 + 2) / 2.0, 1e-6);
  EXPECT_NEAR(history["val_loss"][0], (0 + 4) / 2.0, 1e-6);
  // Validation data that the program gives itself has only its own weights.
  options.validation_split = 0;
  options.validation_data = batches();
  EXPECT_NEAR(zero.model.fit(four_x(), four_y(), options)["val_loss"][0], 0.5, 1e-6);
}

TEST(EvaluateOptions, SampleWeightOfArraysCounts) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  Zero zero;
  EXPECT_NEAR(zero.model.evaluate(four_x(), four_y())["loss"], 0.5, 1e-6);
  EXPECT_NEAR(zero.model.evaluate(four_x(), four_y(), {.sample_weight = weights()})["loss"], 1.25,
              1e-6);
  EXPECT_NEAR(zero.model.evaluate(four_x(), four_y())["loss"], 0.5, 1e-6);
}

// A model that was fitted with weights is not saved with a column of them.
TEST(FitOptions, SampleWeightIsNoFeatureOfTheModel) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  nn::Dense dense({.units = 1});
  Model model([&](const Array& in) { return dense(in); });
  model.compile({.optimizer = "sgd", .loss = "mse"});
  FitOptions options = by_four();
  options.sample_weight = weights();
  model.fit(four_x(), four_y(), options);
  const tools::TempFolder folder;
  const SavedModel saved = model.save(folder.path() + "/model");
  EXPECT_EQ(LoadedModel::load(folder.path() + "/model").predict(Element{four_x()}).size(), 1u);
}

TEST(FitOptions, SampleWeightIsRefusedBesideAnotherColumnOfWeights) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  Zero zero({.optimizer = "sgd", .loss = "mse", .sample_weight = "w"});
  FitOptions options = by_four();
  options.sample_weight = weights();
  EXPECT_THAT(refusal([&] { zero.model.fit(four_x(), four_y(), options); }), HasSubstr("\"w\""));
}

TEST(FitOptions, ClassWeightNamesClassesThatTheLabelCanHave) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  const auto fit = [&](const nn::Loss& loss, const Tensor& label, std::int64_t units,
                       std::map<std::int64_t, float> by_class) {
    nn::Dense dense({.units = units});
    Model model([&](const Array& in) { return dense(in); });
    model.compile({.optimizer = "sgd", .loss = loss});
    FitOptions options = by_four();
    options.class_weight = std::move(by_class);
    model.fit(four_x(), label, options);
  };
  const nn::Loss binary("binary_crossentropy", {.from_logits = true}),
      classes("sparse_categorical_crossentropy", {.from_logits = true});
  const Tensor ids = Tensor::of<std::int64_t>({4}, std::vector<std::int64_t>{0, 1, 2, 0});
  fit(binary, four_y(), 1, {{1, 3}});
  fit("mse", four_y(), 1, {{1, 3}});
  fit("hinge", column({-1, 1, -1, 1}), 1, {{-1, 2}});
  fit(classes, ids, 3, {{0, 1}, {2, 4}});
  EXPECT_THAT(refusal([&] {
                fit(binary, four_y(), 1, {{5, 3}, {6, 4}});
              }),
              HasSubstr("names the class 5, which no label can be: the classes are 0 to 1"));
  EXPECT_THAT(refusal([&] { fit("mse", four_y(), 1, {{5, 3}, {6, 4}}); }), HasSubstr("class 5"));
  EXPECT_THAT(refusal([&] { fit(classes, ids, 3, {{3, 4}}); }), HasSubstr("class 3"));
  EXPECT_THAT(refusal([&] { fit(classes, ids, 3, {{-1, 4}}); }), HasSubstr("class -1"));
}

TEST(FitOptions, ClassWeightIsOfOneOutput) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  nn::Dense a({.units = 1}), b({.units = 1});
  Model model([&](const Array& in) { return Outputs{{"a", a(in)}, {"b", b(in)}}; });
  model.compile({.optimizer = "sgd", .outputs = {{"a", {.loss = "mse"}}, {"b", {.loss = "mae"}}}});
  FitOptions options = by_four();
  options.class_weight = {{1, 3}};
  EXPECT_THAT(refusal([&] { model.fit(four_x(), four_y(), options); }), HasSubstr("has 2"));
}

// ---- options of arrays, and options of the validation ----

using Change = std::function<void(FitOptions&)>;

const std::map<std::string, Change>& of_arrays() {
  static const std::map<std::string, Change> all = {
      {"batch_size", [](FitOptions& o) { o.batch_size = 1; }},
      {"shuffle", [](FitOptions& o) { o.shuffle = true; }},
      {"seed", [](FitOptions& o) { o.seed = 3; }},
      {"sample_weight", [](FitOptions& o) { o.sample_weight = weights(); }},
      {"validation_split", [](FitOptions& o) { o.validation_split = 0.5; }}};
  return all;
}

TEST(FitOptions, ThoseOfArraysAreRefusedBesideADataset) {
  const auto expect_refused = [](Strategy& strategy) {
    const Scope scope = strategy.scope();
    Zero zero;
    for (const auto& [name, change] : of_arrays()) {
      EXPECT_THAT(
          refusal([&, &change = change] { zero.model.fit(batches(), with(silent(), change)); }),
          HasSubstr("`" + name + "` is of arrays"));
      const DatasetFunction data = [](const InputContext&) { return batches().repeat(); };
      EXPECT_THAT(refusal([&, &change = change] {
                    zero.model.fit(data, with(with(silent(), change),
                                              [](FitOptions& o) { o.steps_per_epoch = 2; }));
                  }),
                  HasSubstr("`" + name + "` is of arrays"));
    }
    EXPECT_THAT(refusal([&] { zero.model.evaluate(batches(), {.batch_size = 2}); }),
                HasSubstr("`batch_size` is of arrays"));
    EXPECT_THAT(refusal([&] { zero.model.evaluate(batches(), {.sample_weight = weights()}); }),
                HasSubstr("`sample_weight` is of arrays"));
    FitOptions unshuffled = silent();
    unshuffled.shuffle = false;
    EXPECT_NEAR(zero.model.fit(batches(), unshuffled)["loss"][0], 0.5, 1e-6);
  };
  for (const std::string& name : kInProcess) expect_refused(*make_strategy(name));
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  expect_refused(cluster.strategy());
}

TEST(FitOptions, ThoseOfTheValidationAreRefusedWithoutOne) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  Zero zero;
  const auto refused = [&](const Change& change) {
    return refusal([&] { zero.model.fit(four_x(), four_y(), with(by_four(), change)); });
  };
  EXPECT_THAT(refused([](FitOptions& o) { o.validation_steps = 1; }), HasSubstr("there is none"));
  EXPECT_THAT(refused([](FitOptions& o) { o.validation_freq = 2; }), HasSubstr("there is none"));
  EXPECT_THAT(refused([](FitOptions& o) {
                o.validation_split = 0.5;
                o.validation_data = batches();
              }),
              HasSubstr("both are given"));
  EXPECT_THAT(refused([](FitOptions& o) { o.validation_split = 0.9; }),
              HasSubstr("leaves 0 of 4 examples to train on and 4 to judge by"));
}

// ---- compile ----

TEST(CompileOptions, ThatDoNothingAreRefused) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  const auto refused = [](const auto& make) { return refusal([&] { Zero zero(make()); }); };
  EXPECT_THAT(
      refused([] {
        return CompileOptions{.outputs = {{"a", {.loss = "mse"}}, {"b", {.loss_weight = 2}}}};
      }),
      HasSubstr("loss_weight and no loss"));
  EXPECT_THAT(refused([] {
                return CompileOptions{.outputs = {{"a", {.loss = "mse"}}, {"b", {.label = "y"}}}};
              }),
              HasSubstr("has a label, and no loss or metric"));
  EXPECT_THAT(refused([] {
                return CompileOptions{.loss = "mse",
                                      .metrics = {std::shared_ptr<nn::MeanMetric>()}};
              }),
              HasSubstr("metrics is null"));
  EXPECT_THAT(refused([] {
                return CompileOptions{.optimizer = std::shared_ptr<nn::Sgd>(), .loss = "mse"};
              }),
              HasSubstr("optimizer is null"));
}

}  // namespace
}  // namespace cairn
