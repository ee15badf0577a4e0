// How many batches fit(), evaluate() and predict() take, and which ones.
#include "model/steps/batch_counts.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "core/graph/ops.h"
#include "model/saved/loaded_model.h"
#include "tests/model/small_models.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using testing::column;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kInProcess;
using testing::refusal;

// Batches of two examples, of which each has this label: the loss of a prediction of 0 is its
// square.
Dataset labelled(const std::vector<float>& labels) {
  std::vector<float> y;
  for (const float label : labels) y.insert(y.end(), 2, label);
  const Tensor zeros = Tensor::zeros(DType::kFloat32, {static_cast<std::int64_t>(y.size()), 1});
  return Dataset::from_tensor_slices({{"x", zeros}, {"y", column(y)}}, "y").batch(2);
}

// Predicts 0 and stays so.
struct Still {
  Still() : model([this](const Array& x) { return dense(x); }) {
    model.compile({.optimizer = nn::Sgd({.learning_rate = 0.0f}), .loss = "mse"});
  }
  nn::Dense dense{{.units = 1, .kernel_initializer = "zeros"}};
  Model model;
};

FitOptions judged_on(const Dataset& data, std::int64_t steps, std::int64_t epochs = 3) {
  return {.epochs = epochs,
          .validation_data = data,
          .validation_steps = steps,
          .verbose = Verbose::kSilent};
}

void under_every_strategy(const std::function<void()>& expect) {
  for (const std::string& name : kInProcess) {
    SCOPED_TRACE(name);
    const auto strategy = make_strategy(name);
    const Scope scope = strategy->scope();
    expect();
  }
  SCOPED_TRACE("parameter servers");
  SimulatedCluster cluster({.ps = 1, .workers = 2});
  const Scope scope = cluster.strategy().scope();
  expect();
}

TEST(ValidationSteps, JudgeEachEpochByTheSameBatches) {
  under_every_strategy([] {
    const Dataset data = labelled({1, 3, 2});
    EXPECT_THAT(Still().model.fit(labelled({1}), judged_on(data, 1))["val_loss"],
                Each(::testing::DoubleEq(1)));
    EXPECT_THAT(Still().model.fit(labelled({1}), judged_on(data, 2))["val_loss"],
                Each(::testing::DoubleEq(5)));
    EXPECT_THAT(Still().model.fit(labelled({1}), judged_on(data.repeat(), 5))["val_loss"],
                Each(::testing::DoubleEq((1 + 9 + 4 + 1 + 9) / 5.0)));
  });
}

TEST(ValidationSteps, ThatAreMoreThanThereAreEndFitBeforeItsFirstStep) {
  under_every_strategy([] {
    Still still;
    std::vector<Logs> seen;
    FitOptions options = judged_on(labelled({1, 3}), 3);
    options.callbacks = {std::make_shared<LambdaCallback>(LambdaCallbackOptions{
        .on_epoch_end = [&](std::int64_t, const Logs& logs) { seen.push_back(logs); }})};
    EXPECT_THAT(refusal([&] { still.model.fit(labelled({1}), options); }),
                HasSubstr("`validation_steps` asks for 3 batches, and the data has 2"));
    EXPECT_TRUE(seen.empty());
    EXPECT_THAT(refusal([&] {
                  still.model.evaluate(labelled({1, 3}), {.steps = 3});
                }),
                HasSubstr("`steps` asks for 3 batches, and the data has 2"));
    EXPECT_NEAR(still.model.evaluate(labelled({1, 3}), {.steps = 1})["loss"], 1, 1e-6);
  });
}

TEST(ValidationSteps, AreCountedInFilesAndGeneratorsAsFarAsTheyGo) {
  const tools::TempFolder folder;
  folder.write("v.csv", "0,1\n0,1\n0,3\n");
  CsvSchema schema;
  schema.columns = {{.name = "x"}, {.name = "y"}};
  schema.label.column = "y";
  const Dataset file = Dataset::csv(folder.path() + "/v.csv", schema).batch(2);
  EXPECT_EQ(batches_to_judge(file, 2, "steps"), 2);
  EXPECT_THAT(refusal([&] { batches_to_judge(file, 3, "steps"); }), HasSubstr("the data has 2"));
  EXPECT_EQ(batches_to_judge(file.repeat(), 7, "steps"), 7);
  // One that never ends is asked for what is wanted, and no more.
  std::int64_t made = 0;
  const Dataset numbers = Dataset::from_generator(
      [&made] {
        return [&made]() -> std::optional<Element> {
          ++made;
          return Element{Tensor::scalar(1.0f)};
        };
      },
      ElementSpec{{{"x", {DType::kFloat32, {}}}}, ""});
  EXPECT_EQ(batches_to_judge(numbers.batch(2), 3, "steps"), 3);
  EXPECT_LE(made, 7);
}

// ---- a validation that does not follow each epoch ----

// Stands for a model that becomes better.
struct LowersItsWorth final : Callback {
  void on_epoch_end(TrainingRun&, std::int64_t epoch, Logs& logs) override {
    if (logs.contains("val_loss")) logs.set("val_loss", 10 - static_cast<double>(epoch));
  }
};

FitOptions every_second_epoch(std::vector<std::shared_ptr<Callback>> callbacks,
                              std::int64_t epochs = 6) {
  FitOptions options = judged_on(labelled({2}), 0, epochs);
  options.validation_freq = 2;
  options.callbacks = std::move(callbacks);
  return options;
}

TEST(ValidationFreq, LetsCallbacksWaitForTheNextValidation) {
  under_every_strategy([] {
    // No validation is better than the first one: the second and the third end the patience of two.
    const auto stops = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.patience = 2});
    const auto lowers = std::make_shared<ReduceLROnPlateau>(
        ReduceLROnPlateauOptions{.patience = 1, .mode = MonitorMode::kMin});
    Still still;
    const History history = still.model.fit(labelled({1}), every_second_epoch({stops, lowers}, 9));
    EXPECT_EQ(history.epoch.size(), 6u);
    EXPECT_EQ(stops->stopped_epoch(), 5);
    EXPECT_EQ(stops->best_epoch(), 1);
    // While each validation is better, training goes on.
    const auto waits = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.patience = 1});
    EXPECT_EQ(
        Still()
            .model
            .fit(labelled({1}), every_second_epoch({std::make_shared<LowersItsWorth>(), waits}))
            .epoch.size(),
        6u);
    EXPECT_EQ(waits->best_epoch(), 5);
  });
}

TEST(ValidationFreq, LetsTheBestCheckpointWaitForTheNextValidation) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  const tools::TempFolder folder;
  const auto best = std::make_shared<ModelCheckpoint>(
      folder.path() + "/best", ModelCheckpointOptions{.save_best_only = true});
  EXPECT_EQ(Still().model.fit(labelled({1}), every_second_epoch({best})).epoch.size(), 6u);
  const auto misspelt = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.monitor = "val_los"});
  EXPECT_THAT(refusal([&] { Still().model.fit(labelled({1}), every_second_epoch({misspelt})); }),
              HasSubstr("val_los"));
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(ValidationFreq, LeavesTheColumnsOfACsvLogWhereTheyAre) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  const tools::TempFolder folder;
  const std::string path = folder.path() + "/log.csv";
  Still().model.fit(labelled({1}), every_second_epoch({std::make_shared<CSVLogger>(path)}, 2));
  EXPECT_EQ(text_of(path), "epoch,loss,val_loss\n0,1,NA\n1,1,4\n");
  // A column that the file does not have is not lost without a word.
  struct OneMore final : Callback {
    void on_epoch_end(TrainingRun&, std::int64_t, Logs& logs) override { logs.set("more", 1); }
  };
  FitOptions options =
      every_second_epoch({std::make_shared<OneMore>(),
                          std::make_shared<CSVLogger>(path, CSVLoggerOptions{.append = true})});
  EXPECT_THROW(Still().model.fit(labelled({1}), options), FailedPreconditionError);
}

// ---- training ----

TEST(StepsPerEpoch, GoOnWhereTheLastEpochStopped) {
  under_every_strategy([] {
    const History history = Still().model.fit(
        labelled({1, 2, 3}), {.epochs = 3, .steps_per_epoch = 2, .verbose = Verbose::kSilent});
    EXPECT_THAT(history["loss"],
                ElementsAre(::testing::DoubleEq((1 + 4) / 2.0), ::testing::DoubleEq((9 + 1) / 2.0),
                            ::testing::DoubleEq((4 + 9) / 2.0)));
  });
}

// ---- data without an end ----

TEST(DataWithoutAnEnd, IsRefusedWhereverNothingEndsIt) {
  under_every_strategy([] {
    const Dataset endless = labelled({1, 3}).repeat();
    Still still;
    EXPECT_THAT(refusal([&] { still.model.fit(endless); }), HasSubstr("`steps_per_epoch`"));
    EXPECT_THAT(refusal([&] { still.model.fit(labelled({1}), judged_on(endless, 0)); }),
                HasSubstr("`validation_steps`"));
    EXPECT_THAT(refusal([&] { still.model.evaluate(endless); }), HasSubstr("`steps`"));
    EXPECT_THAT(refusal([&] { still.model.predict(endless); }), HasSubstr("take()"));
    EXPECT_THAT(refusal([&] { still.model.predict(endless, [](const auto&) {}); }),
                HasSubstr("take()"));
    const tools::TempFolder folder;
    const std::string file = folder.path() + "/predicted.csv";
    EXPECT_THAT(refusal([&] { still.model.predict_to(endless, file); }), HasSubstr("take()"));
    EXPECT_FALSE(std::ifstream(file).good());
    EXPECT_EQ(still.model.predict(endless.take(3)).shape()[0], 6);
  });
}

TEST(DataWithoutAnEnd, IsRefusedByASavedModelToo) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  Still still;
  still.model.evaluate(labelled({1}));
  const tools::TempFolder folder;
  still.model.save(folder.path() + "/model");
  LoadedModel loaded = LoadedModel::load(folder.path() + "/model");
  const auto take = [](const std::vector<Tensor>&) {};
  EXPECT_THAT(refusal([&] { loaded.predict(labelled({1}).repeat(), take); }), HasSubstr("take()"));
  EXPECT_THAT(refusal([&] { loaded.predict(labelled({1}), take, {.batch = 2}); }),
              HasSubstr("`batch`"));
}

TEST(DataWithoutAnEnd, IsKnownByItsDescription) {
  const Dataset some = Dataset::range(5), endless = some.repeat();
  const auto renamed = [](const Dataset& data) {
    return data.map([](const Features& each) { return Outputs{{"other", each["value"]}}; });
  };
  for (const Dataset& ends :
       {some, some.repeat(2), endless.take(3), Dataset::zip({endless, renamed(some)}),
        endless.take_while([](const Features& each) { return each["value"] < 3; })})
    EXPECT_FALSE(has_no_end(ends));
  for (const Dataset& goes_on : {endless, endless.skip(3).batch(2), some.concatenate(endless),
                                 endless.repeat(2), Dataset::zip({endless, renamed(endless)})})
    EXPECT_TRUE(has_no_end(goes_on));
}

}  // namespace
}  // namespace cairn
