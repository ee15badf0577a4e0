#include "tools/job/train/checkpoint_path.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "storage/manifest.h"
#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {
using testing::ElementsAre;

class CheckpointPath : public testing::Test {
 protected:
  CheckpointPath() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
  }
  ~CheckpointPath() override { std::filesystem::current_path(before_); }
  static void save(const std::string& path) {
    system_disk().make_folder(path);
    storage::commit(system_disk(), path, {});
  }

  TempFolder folder_;
  std::filesystem::path before_;
};

TEST_F(CheckpointPath, IsACheckpointAFolderOfThemOrARun) {
  save("runs/a/checkpoints/ckpt-00000001");
  save("runs/a/checkpoints/ckpt-00000002");
  system_disk().make_folder("runs/a/checkpoints/ckpt-00000003");  // never completed
  const std::string first = "runs/a/checkpoints/ckpt-00000001",
                    second = "runs/a/checkpoints/ckpt-00000002";
  EXPECT_THAT(checkpoints_at("runs/a"), ElementsAre(first, second));
  EXPECT_THAT(checkpoints_at("runs/a/checkpoints"), ElementsAre(first, second));
  EXPECT_THAT(checkpoints_at(first), ElementsAre(first));
  EXPECT_EQ(checkpoint_at("runs/a"), second);
  EXPECT_THROW(checkpoint_at("runs"), NotFoundError);
}

TEST_F(CheckpointPath, LatestIsTheNewestOfTheNewestRunThatHasOne) {
  EXPECT_THROW(latest_checkpoint(), NotFoundError);
  save("runs/20261121-110902-1/checkpoints/ckpt-00000007");
  save("runs/20261121-120000-1/checkpoints/ckpt-00000002");
  system_disk().make_folder("runs/20261121-130000-1/logs");
  EXPECT_EQ(latest_checkpoint(), "runs/20261121-120000-1/checkpoints/ckpt-00000002");
}

}  // namespace
}  // namespace cairn::tools
