// Models of several processes that train together, each of which is a thread here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "tests/model/small_models.h"
#include "tests/strategy/in_sync/workers_in_step.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::Each;
using testing::LinearData;
using testing::on_workers;
using MultiWorker = MultiWorkerMirroredStrategy;

struct OfWorker {
  History history;
  std::vector<float> kernel, predicted;
};

std::vector<float> values(const Tensor& tensor) {
  const auto all = tensor.values<float>();
  return {all.begin(), all.end()};
}

// The same program in every process.
OfWorker train_here(Strategy& strategy,
                    const std::vector<std::shared_ptr<Callback>>& callbacks = {}) {
  const Scope scope = strategy.scope();
  nn::Dense dense({.units = 1, .seed = 1});
  Model model([&](const Array& x) { return dense(x); });
  model.compile(
      {.optimizer = nn::Adam({.learning_rate = 0.1f}), .loss = "mse", .metrics = {"mae"}});
  const LinearData data(44);
  OfWorker trained;
  trained.history = model.fit(data.x, data.y,
                              {.epochs = 3,
                               .batch_size = 8,
                               .validation_split = 0.25,
                               .callbacks = callbacks,
                               .verbose = Verbose::kSilent});
  trained.kernel = values(model.get_weights()[0]);
  trained.predicted = values(model.predict(data.x, 8));
  return trained;
}

TEST(ModelOnWorkers, LearnsAndPredictsAsOneDeviceDoes) {
  OneDeviceStrategy one;
  const OfWorker alone = train_here(one);
  std::vector<OfWorker> together(2);
  const auto errors = on_workers(2, [&](MultiWorker& strategy) {
    together[static_cast<std::size_t>(strategy.id_in_cluster())] = train_here(strategy);
  });
  ASSERT_THAT(errors, Each(""));
  EXPECT_EQ(together[0].kernel, together[1].kernel);
  EXPECT_EQ(together[0].predicted, together[1].predicted);
  ASSERT_EQ(together[0].predicted.size(), alone.predicted.size());
  for (std::size_t i = 0; i < alone.predicted.size(); ++i)
    EXPECT_NEAR(together[0].predicted[i], alone.predicted[i], 1e-5);
  for (const char* name : {"loss", "mae", "val_loss", "val_mae"})
    for (std::size_t epoch = 0; epoch < 3; ++epoch)
      EXPECT_NEAR(together[1].history[name][epoch], alone.history[name][epoch], 1e-5) << name;
}

TEST(ModelOnWorkers, GoesOnWithTheSameBitsAfterAllWereKilled) {
  std::vector<OfWorker> undisturbed(2), again(2);
  const auto at = [](std::vector<OfWorker>& all, MultiWorker& strategy) -> OfWorker& {
    return all[static_cast<std::size_t>(strategy.id_in_cluster())];
  };
  ASSERT_THAT(
      on_workers(2,
                 [&](MultiWorker& strategy) { at(undisturbed, strategy) = train_here(strategy); }),
      Each(""));
  const tools::TempFolder folder;
  const auto backup = [&] {
    return std::make_shared<BackupAndRestore>(folder.path() + "/backup",
                                              BackupAndRestoreOptions{.every_steps = 2});
  };
  on_workers(2, [&](MultiWorker& strategy) {
    EXPECT_THROW(train_here(strategy, {backup(), std::make_shared<testing::KillsAt>(1, 2)}),
                 testing::Killed);
  });
  ASSERT_THAT(on_workers(2,
                         [&](MultiWorker& strategy) {
                           at(again, strategy) = train_here(strategy, {backup()});
                         }),
              Each(""));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again[i].kernel, undisturbed[i].kernel);
    EXPECT_EQ(again[i].history["loss"], undisturbed[i].history["loss"]);
    EXPECT_EQ(again[i].history["val_mae"], undisturbed[i].history["val_mae"]);
  }
}

// ---- a dataset function ----

// Six batches for one replica each; of pipeline k the labels are k.
Dataset of_pipeline(const InputContext& context) {
  const auto label = static_cast<float>(context.input_pipeline_id);
  std::vector<float> x(12), y(12, label);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 12 + label;
  return Dataset::from_tensor_slices(
             {{"x", Tensor::of<float>({12, 1}, x)}, {"y", Tensor::of<float>({12, 1}, y)}}, "y")
      .batch(2);
}

// Kernel and bias, learnt of x times `scale`.
std::vector<float> fit_pipelines(Strategy& strategy, float scale, std::int64_t epochs,
                                 std::int64_t steps, std::vector<InputContext>* asked = nullptr,
                                 const std::vector<std::shared_ptr<Callback>>& callbacks = {}) {
  const Scope scope = strategy.scope();
  nn::Dense dense({.units = 1, .kernel_initializer = "zeros"});
  Model model([&](const Array& x) { return dense(x * Array(scale)); });
  model.compile({.optimizer = nn::Sgd({.learning_rate = 0.25f}), .loss = "mse"});
  const DatasetFunction data = [&](const InputContext& context) {
    if (asked != nullptr) asked->push_back(context);
    return of_pipeline(context).repeat();
  };
  model.fit(data, {.epochs = epochs,
                   .steps_per_epoch = steps,
                   .callbacks = callbacks,
                   .verbose = Verbose::kSilent});
  return {values(model.get_weights()[0])[0], values(model.get_weights()[1])[0]};
}

TEST(ModelOnWorkers, CallADatasetFunctionForThePipelineOfEachProcess) {
  std::vector<std::vector<InputContext>> asked(2);
  const auto errors =
      on_workers(2,
                 [&](MultiWorker& strategy) {
                   const auto id = static_cast<std::size_t>(strategy.id_in_cluster());
                   EXPECT_NEAR(fit_pipelines(strategy, 0, 1, 40, &asked[id])[1], 0.5f, 1e-5f);
                 },
                 {.devices = testing::devices(2)});
  ASSERT_THAT(errors, Each(""));
  for (std::size_t id = 0; id < 2; ++id) {
    ASSERT_EQ(asked[id].size(), 1u);
    EXPECT_EQ(asked[id][0].input_pipeline_id, static_cast<std::int64_t>(id));
    EXPECT_EQ(asked[id][0].num_input_pipelines, 2);
    EXPECT_EQ(asked[id][0].num_replicas_in_sync, 4);
  }
}

TEST(ModelOnReplicas, TakeTheBatchesOfADatasetFunctionInTurn) {
  MirroredStrategy strategy({"cpu:0", "cpu:1"});
  std::vector<InputContext> asked;
  const Scope scope = strategy.scope();
  const DatasetFunction data = [&](const InputContext& context) {
    asked.push_back(context);
    return of_pipeline(context);
  };
  nn::Dense dense({.units = 1, .kernel_initializer = "zeros"});
  Model trained([&](const Array& x) { return x + dense(x); });
  trained.compile({.optimizer = nn::Sgd({.learning_rate = 0.0f}), .loss = "mae"});
  const History history =
      trained.fit(data, {.epochs = 3, .steps_per_epoch = 1, .verbose = Verbose::kSilent});
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].num_replicas_in_sync, 2);
  // Means of 0 to 3, 4 to 7 and 8 to 11 twelfths.
  for (std::size_t epoch = 0; epoch < 3; ++epoch)
    EXPECT_NEAR(history["loss"][epoch], (1.5 + 4 * static_cast<double>(epoch)) / 12, 1e-6);
}

TEST(ModelOnWorkers, GoOnInADatasetFunctionsDataAfterAllWereKilled) {
  const auto train = [](MultiWorker& strategy,
                        const std::vector<std::shared_ptr<Callback>>& callbacks) {
    return fit_pipelines(strategy, 1, 3, 2, nullptr, callbacks);
  };
  std::vector<std::vector<float>> undisturbed(2), again(2);
  const auto at = [](auto& all, MultiWorker& strategy) -> auto& {
    return all[static_cast<std::size_t>(strategy.id_in_cluster())];
  };
  const tools::TempFolder folder;
  const auto backup = [&] {
    return std::make_shared<BackupAndRestore>(folder.path() + "/backup",
                                              BackupAndRestoreOptions{.every_steps = 1});
  };
  ASSERT_THAT(on_workers(2, [&](MultiWorker& s) { at(undisturbed, s) = train(s, {}); }), Each(""));
  on_workers(2, [&](MultiWorker& s) {
    EXPECT_THROW(train(s, {backup(), std::make_shared<testing::KillsAt>(1, 1)}), testing::Killed);
  });
  ASSERT_THAT(on_workers(2, [&](MultiWorker& s) { at(again, s) = train(s, {backup()}); }),
              Each(""));
  EXPECT_EQ(again, undisturbed);
}

// ---- files ----

struct OfFiles {
  std::vector<double> losses, judged;
  std::vector<float> predicted;
};

// Files of different sizes, as many as workers, of which none may be a worker's alone: an epoch,
// an evaluation and a prediction are of all rows, in their order.
OfFiles with_files(Strategy& strategy, const std::vector<std::string>& files) {
  const Scope scope = strategy.scope();
  CsvSchema schema;
  schema.columns = {{.name = "x"}, {.name = "y"}};
  schema.label.column = "y";
  const Dataset data = Dataset::csv(files, schema).batch(4);
  nn::Dense dense({.units = 1, .kernel_initializer = "zeros"});
  Model model([&](const Array& x) { return dense(reshape(x, {Shape::kUnknown, 1})); });
  model.compile({.optimizer = nn::Sgd({.learning_rate = 0.01f}), .loss = "mse"});
  OfFiles made;
  made.losses = model.fit(data, {.epochs = 2, .verbose = Verbose::kSilent})["loss"];
  made.judged = {model.evaluate(data)["loss"]};
  made.predicted = values(model.predict(data));
  return made;
}

TEST(ModelOnWorkers, ReadAllOfTheFilesAsOneDeviceDoes) {
  const tools::TempFolder folder;
  std::string first, second;
  for (int i = 0; i < 23; ++i) (i < 20 ? first : second) += str(i * 0.1f, ",", i % 3, "\n");
  folder.write("a.csv", first);
  folder.write("b.csv", second);
  const std::vector<std::string> files = {folder.path() + "/a.csv", folder.path() + "/b.csv"};
  OneDeviceStrategy one;
  const OfFiles alone = with_files(one, files);
  const auto errors = on_workers(2, [&](MultiWorker& strategy) {
    const OfFiles here = with_files(strategy, files);
    EXPECT_THAT(here.losses, ::testing::Pointwise(::testing::DoubleNear(1e-5), alone.losses));
    EXPECT_THAT(here.judged, ::testing::Pointwise(::testing::DoubleNear(1e-5), alone.judged));
    EXPECT_THAT(here.predicted, ::testing::Pointwise(::testing::FloatNear(1e-5f), alone.predicted));
  });
  ASSERT_THAT(errors, Each(""));
}

}  // namespace
}  // namespace cairn
