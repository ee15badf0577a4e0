// Models of several processes that train together, each of which is a thread here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "tests/coordinator/workers_in_step.h"
#include "tests/model/small_models.h"
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

}  // namespace
}  // namespace cairn
