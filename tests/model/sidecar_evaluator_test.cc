#include "model/sidecar_evaluator.h"

#include <gtest/gtest.h>

#include "strategy/in_sync/mirrored_strategy.h"
#include "tests/model/small_models.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using testing::LinearData;
using testing::LinearModel;

TEST(SidecarEvaluator, JudgesTheNewestCheckpointAsItsProgramWould) {
  const tools::TempFolder folder;
  const LinearData data(40);
  Logs own;
  {
    MirroredStrategy strategy({"cpu:0", "cpu:1"});
    const Scope scope = strategy.scope();
    LinearModel linear;
    linear.model.fit(data.x, data.y,
                     {.epochs = 2,
                      .callbacks = {std::make_shared<ModelCheckpoint>(folder.path())},
                      .verbose = Verbose::kSilent});
    own = linear.model.evaluate(data.x, data.y, {.batch_size = 8});
  }
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  LinearModel linear;
  std::vector<std::string> judged;
  Logs found;
  const Dataset batches = Dataset::from_tensor_slices({{"x", data.x}, {"y", data.y}}, "y").batch(8);
  SidecarEvaluator evaluator(
      linear.model, batches,
      {.checkpoints = folder.path(),
       .patience = Duration::zero(),
       .on_evaluation = [&](const std::string& checkpoint, const Logs& logs) {
         judged.push_back(checkpoint);
         found = logs;
       }});
  EXPECT_EQ(evaluator.run(), 1);
  EXPECT_EQ(judged, (std::vector<std::string>{folder.path() + "/ckpt-00000002"}));
  EXPECT_NEAR(found.at("loss"), own.at("loss"), 1e-6);
  EXPECT_NEAR(found.at("mae"), own.at("mae"), 1e-6);
}

TEST(SidecarEvaluator, EndsWhereNoCheckpointComes) {
  const tools::TempFolder folder;
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  LinearModel linear;
  const LinearData data(8);
  const Dataset batches = Dataset::from_tensor_slices({{"x", data.x}, {"y", data.y}}, "y").batch(8);
  EXPECT_EQ(SidecarEvaluator(linear.model, batches,
                             {.checkpoints = folder.path(), .patience = Duration::zero()})
                .run(),
            0);
}

}  // namespace
}  // namespace cairn
