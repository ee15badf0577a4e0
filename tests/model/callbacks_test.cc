#include "model/callbacks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/disk/disk.h"
#include "model/progress_bar.h"
#include "model/saved/loaded_model.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "tests/model/small_models.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using testing::Killed;
using testing::KillsAt;
using testing::LinearData;
using testing::LinearModel;
using testing::Said;

FitOptions with(std::int64_t epochs, std::vector<std::shared_ptr<Callback>> callbacks) {
  return {.epochs = epochs,
          .batch_size = 8,
          .callbacks = std::move(callbacks),
          .verbose = Verbose::kSilent};
}

struct OneDevice {
  OneDeviceStrategy strategy;
  Scope scope = strategy.scope();
  LinearModel linear{0.01f};
  LinearData data{16};
  History fit(const FitOptions& options) { return linear.model.fit(data.x, data.y, options); }
};

TEST(EarlyStopping, StopsAfterAsManyEpochsWithoutAnImprovement) {
  OneDevice on;
  auto stops = std::make_shared<EarlyStopping>(
      EarlyStoppingOptions{.monitor = "val_auc", .patience = 2, .mode = MonitorMode::kMax});
  const History history = on.fit(with(
      9, {std::make_shared<Said>("val_auc", std::vector<double>{.5, .6, .55, .59, .7, .8, 1, 1, 1}),
          stops}));
  EXPECT_EQ(history.epoch.size(), 4u);
  EXPECT_EQ(stops->stopped_epoch(), 3);
  EXPECT_EQ(stops->best_epoch(), 1);
}

TEST(EarlyStopping, PutsTheBestWeightsBack) {
  OneDevice on;
  std::vector<float> kernels;
  auto notes = std::make_shared<LambdaCallback>(
      LambdaCallbackOptions{.on_epoch_end = [&](std::int64_t, const Logs&) {
        kernels.push_back(on.linear.model.get_weights()[0].values<float>()[0]);
      }});
  on.fit(with(9, {std::make_shared<Said>("val_loss", std::vector<double>{3, 1, 2, 2}),
                  std::make_shared<EarlyStopping>(
                      EarlyStoppingOptions{.patience = 2, .restore_best_weights = true}),
                  notes}));
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_NE(kernels[1], kernels[3]);
  EXPECT_EQ(on.linear.model.get_weights()[0].values<float>()[0], kernels[1]);
}

TEST(EarlyStopping, PutsTheBestWeightsBackWhenTheEpochsRunOutFirst) {
  OneDevice on;
  std::vector<float> kernels;
  on.fit(with(3, {std::make_shared<Said>("val_loss", std::vector<double>{3, 1, 2}),
                  std::make_shared<EarlyStopping>(
                      EarlyStoppingOptions{.patience = 5, .restore_best_weights = true}),
                  std::make_shared<LambdaCallback>(
                      LambdaCallbackOptions{.on_epoch_end = [&](std::int64_t, const Logs&) {
                        kernels.push_back(on.linear.model.get_weights()[0].values<float>()[0]);
                      }})}));
  ASSERT_NE(kernels.at(1), kernels.at(2));
  EXPECT_EQ(on.linear.model.get_weights()[0].values<float>()[0], kernels[1]);
}

TEST(EarlyStopping, NamesWhatItCannotMonitor) {
  OneDevice on;
  try {
    on.fit(with(2, {std::make_shared<EarlyStopping>()}));
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("\"val_loss\""), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("mae"), std::string::npos);
  }
}

TEST(LearningRate, IsWhatTheScheduleSaysInEachEpoch) {
  OneDevice on;
  const History history =
      on.fit(with(3, {std::make_shared<LearningRateScheduler>([](std::int64_t epoch, double rate) {
                    return epoch == 0 ? rate : rate / 2;
                  })}));
  EXPECT_FLOAT_EQ(static_cast<float>(history["learning_rate"][0]), 0.01f);
  EXPECT_FLOAT_EQ(static_cast<float>(history["learning_rate"][2]), 0.0025f);
}

TEST(LearningRate, OfZeroLeavesTheWeightsAlone) {
  OneDevice on;
  std::vector<float> kernels;
  on.fit(with(2, {std::make_shared<LearningRateScheduler>(
                      [](std::int64_t epoch, double rate) { return epoch == 0 ? rate : 0.0; }),
                  std::make_shared<LambdaCallback>(
                      LambdaCallbackOptions{.on_epoch_end = [&](std::int64_t, const Logs&) {
                        kernels.push_back(on.linear.model.get_weights()[0].values<float>()[0]);
                      }})}));
  EXPECT_EQ(kernels.at(0), kernels.at(1));
}

TEST(LearningRate, FallsOnAPlateau) {
  OneDevice on;
  const History history =
      on.fit(with(5, {std::make_shared<Said>("val_loss", std::vector<double>{3, 2, 2, 2, 2}),
                      std::make_shared<ReduceLROnPlateau>(
                          ReduceLROnPlateauOptions{.factor = 0.5, .patience = 2})}));
  EXPECT_FLOAT_EQ(on.linear.model.learning_rate(), 0.005f);
}

TEST(TerminateOnNaN, EndsTrainingWithoutAnError) {
  OneDevice on;
  LinearModel wild(1e30f);
  const auto fit = [&](const FitOptions& options) {
    return wild.model.fit(on.data.x, on.data.y, options);
  };
  EXPECT_THROW(fit(with(20, {})), InvalidArgumentError);
  LinearModel again(1e30f);
  const History history =
      again.model.fit(on.data.x, on.data.y, with(20, {std::make_shared<TerminateOnNaN>()}));
  EXPECT_LT(history.epoch.size(), 20u);
}

// Many steps are under way, and more than one of them meets it.
TEST(TerminateOnNaN, EndsTrainingWithoutAnErrorOnParameterServers) {
  SimulatedCluster cluster({.ps = 1, .workers = 2});
  const Scope scope = cluster.strategy().scope();
  LinearModel wild(1e30f);
  const LinearData data(400);
  const History history =
      wild.model.fit(data.x, data.y, with(20, {std::make_shared<TerminateOnNaN>()}));
  EXPECT_LT(history.epoch.size(), 20u);
}

TEST(CSVLogger, WritesALinePerEpoch) {
  const tools::TempFolder folder;
  OneDevice on;
  const std::string path = folder.path() + "/log.csv";
  on.fit(with(2, {std::make_shared<CSVLogger>(path)}));
  on.fit(with(1, {std::make_shared<CSVLogger>(path, CSVLoggerOptions{.append = true})}));
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "epoch,loss,mae");
  EXPECT_TRUE(lines[2].starts_with("1,"));
  EXPECT_TRUE(lines[3].starts_with("0,"));
}

TEST(ModelCheckpoint, KeepsTheBestAndTheModelOfIt) {
  const tools::TempFolder folder;
  OneDevice on;
  const std::string model = folder.path() + "/model";
  auto keeps = std::make_shared<ModelCheckpoint>(
      folder.path() + "/checkpoints",
      ModelCheckpointOptions{.monitor = "val_loss", .save_best_only = true, .model = model});
  std::vector<float> kernels;
  on.fit(with(4, {std::make_shared<Said>("val_loss", std::vector<double>{3, 1, 2, 2}), keeps,
                  std::make_shared<LambdaCallback>(
                      LambdaCallbackOptions{.on_epoch_end = [&](std::int64_t, const Logs&) {
                        kernels.push_back(on.linear.model.get_weights()[0].values<float>()[0]);
                      }})}));
  Checkpoint(on.strategy).restore(keeps->newest()).expect_partial();
  EXPECT_EQ(on.linear.model.get_weights()[0].values<float>()[0], kernels.at(1));

  const Tensor best = on.linear.model.predict(on.data.x, 16);
  const Tensor loaded = LoadedModel::load(model).predict({on.data.x}).at(0);
  EXPECT_TRUE(std::ranges::equal(loaded.values<float>(), best.values<float>()));
}

TEST(ModelCheckpoint, KeepsAndHoldsRowsAsItsOptionsSay) {
  const tools::TempFolder folder;
  OneDevice on;
  on.fit(with(
      5, {std::make_shared<ModelCheckpoint>(
             folder.path(), ModelCheckpointOptions{.keep_last = 1,
                                                   .keep_every = 2,
                                                   .encoding = {.rows = storage::RowForm::kBfloat16,
                                                                .variables = {"*kernel"}}})}));
  std::vector<std::uint64_t> ids;
  for (const auto& entry : storage::CheckpointFolder(system_disk(), folder.path()).list()) {
    ids.push_back(entry.id);
    for (const auto& variable : storage::read_manifest(system_disk(), entry.path).variables)
      EXPECT_EQ(variable.row_form == storage::RowForm::kBfloat16, variable.name.ends_with("kernel"))
          << variable.name;
  }
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{2, 4, 5}));
}

TEST(ModelCheckpoint, OnOneDeviceRefusesDeltas) {
  const tools::TempFolder folder;
  OneDevice on;
  EXPECT_THROW(on.fit(with(1, {std::make_shared<ModelCheckpoint>(
                                  folder.path(), ModelCheckpointOptions{.full_every = 2})})),
               InvalidArgumentError);
}

TEST(BackupAndRestore, WantsAFolderOfThisMachine) {
  EXPECT_THROW(BackupAndRestore("s3://bucket/backup"), InvalidArgumentError);
}

// ---- ProgressBar ----

TEST(ProgressBar, SaysHowFarItIsAndHowLongItStillTakes) {
  EXPECT_EQ(progress_bar_text(120, 480, 3.0, {{"accuracy", 0.857142}, {"loss", 0.5}}),
            "120/480 [=======>......................]  9.0 s left  accuracy 0.8571  loss 0.5");
  EXPECT_EQ(progress_bar_text(4, 4, 1.0, {}), "4/4 [==============================]  0.0 s left");
}

// A bar on a terminal is wiped off; a file that is no terminal gets nothing.
TEST(ProgressBar, LeavesAFreshLine) {
  const tools::TempFolder folder;
  OneDevice on;
  for (const bool always : {true, false}) {
    const std::string path = str(folder.path(), "/drawn-", always);
    std::FILE* const out = std::fopen(path.c_str(), "w");
    on.fit(with(2, {std::make_shared<ProgressBar>(
                       ProgressBarOptions{.out = out, .always = always, .every = {}})}));
    std::fclose(out);
    const std::string drawn = folder.read(str("drawn-", always));
    EXPECT_EQ(drawn.empty(), !always);
    EXPECT_EQ(drawn.empty(), !drawn.ends_with("\r\033[K")) << drawn;
  }
}

// ---- BackupAndRestore ----

struct Trained {
  History history;
  std::vector<float> kernel;
};

// Runs a program from its start, with a new model each time.
Trained program(const std::string& strategy_name, const std::string& backup,
                std::shared_ptr<Callback> kills = nullptr) {
  const auto strategy = make_strategy(strategy_name);
  const Scope scope = strategy->scope();
  nn::Dense dense({.units = 1, .seed = 1});
  Model model([&](const Array& x) { return dense(x); });
  model.compile(
      {.optimizer = nn::Adam({.learning_rate = 0.1f}), .loss = "mse", .metrics = {"mae"}});
  const LinearData data(44);
  FitOptions options = with(4, {});
  if (!backup.empty())
    options.callbacks.push_back(
        std::make_shared<BackupAndRestore>(backup, BackupAndRestoreOptions{.every_steps = 2}));
  if (kills) options.callbacks.push_back(kills);
  Trained run{model.fit(data.x, data.y, options), {}};
  const Tensor kernel = model.get_weights()[0];
  run.kernel.assign(kernel.values<float>().begin(), kernel.values<float>().end());
  return run;
}

TEST(BackupAndRestore, EndsWithTheSameBitsAsAnUndisturbedRun) {
  for (const std::string& name : testing::kInProcess) {
    SCOPED_TRACE(name);
    const Trained undisturbed = program(name, "");
    for (const auto& [epoch, step] : std::vector<std::pair<int, int>>{{1, 4}, {2, 5}}) {
      SCOPED_TRACE(str("killed in epoch ", epoch, " after step ", step));
      const tools::TempFolder folder;
      const std::string backup = folder.path() + "/backup";
      EXPECT_THROW(program(name, backup, std::make_shared<KillsAt>(epoch, step)), Killed);
      const Trained again = program(name, backup);
      EXPECT_EQ(again.history.epoch, undisturbed.history.epoch);
      EXPECT_EQ(again.history["loss"], undisturbed.history["loss"]);
      EXPECT_EQ(again.history["mae"], undisturbed.history["mae"]);
      EXPECT_EQ(again.kernel, undisturbed.kernel);
      EXPECT_FALSE(std::filesystem::exists(backup));
    }
  }
}

// Which callback stands behind another in the list is no reason to forget what it has seen.
TEST(BackupAndRestore, KeepsWhatCallbacksBehindItRemember) {
  const tools::TempFolder folder;
  const auto fit = [&](std::shared_ptr<Callback> last) {
    OneDevice on;
    auto stops = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.patience = 3});
    on.fit(with(9, {std::make_shared<Said>("val_loss", std::vector<double>{3, 1, 2, 2, 2, 2, 2, 2}),
                    std::make_shared<BackupAndRestore>(folder.path() + "/backup"), stops,
                    std::move(last)}));
    return stops;
  };
  EXPECT_THROW(fit(std::make_shared<KillsAt>(3, 0)), Killed);
  const auto stops = fit(std::make_shared<LambdaCallback>(LambdaCallbackOptions{}));
  EXPECT_EQ(stops->best_epoch(), 1);
  EXPECT_EQ(stops->stopped_epoch(), 4);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/backup"));
}

TEST(BackupAndRestore, RefusesADamagedFileOfCallbacksTensors) {
  const tools::TempFolder folder;
  const std::string backup = folder.path() + "/backup";
  const auto fit = [&](std::shared_ptr<Callback> last) {
    OneDevice on;
    on.fit(with(4, {std::make_shared<Said>("val_loss", std::vector<double>{3, 2, 1, 2}),
                    std::make_shared<EarlyStopping>(
                        EarlyStoppingOptions{.patience = 3, .restore_best_weights = true}),
                    std::make_shared<BackupAndRestore>(backup), std::move(last)}));
  };
  EXPECT_THROW(fit(std::make_shared<KillsAt>(2, 0)), Killed);
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(backup))
    if (entry.path().extension() == ".tensors") file = entry.path();
  ASSERT_FALSE(file.empty());
  std::ofstream(file) << "x";
  const auto again = [&] { fit(std::make_shared<LambdaCallback>(LambdaCallbackOptions{})); };
  EXPECT_THROW(again(), DataLossError);
  std::filesystem::remove(file);
  EXPECT_THROW(again(), DataLossError);
}

TEST(LambdaCallback, WantsBothHalvesOfAState) {
  EXPECT_THROW(LambdaCallback({.state = [] { return CallbackState(); }}), InvalidArgumentError);
}

TEST(BackupAndRestore, RefusesTheCheckpointOfAnotherProgram) {
  const tools::TempFolder folder;
  OneDevice on;
  on.fit(with(1, {}));
  Checkpoint(on.strategy).save(folder.path());
  EXPECT_THROW(on.fit(with(1, {std::make_shared<BackupAndRestore>(folder.path())})),
               FailedPreconditionError);
}

}  // namespace
}  // namespace cairn
