#include "tools/job/train/checkpoint_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/error.h"
#include "storage/checkpoint_folder.h"
#include "tests/tools/temp_folder.h"
#include "tools/job/run/progress_line.h"

namespace cairn::tools {
namespace {
using testing::AllOf;
using testing::HasSubstr;

class CheckpointClaim : public testing::Test {
 protected:
  void claim(const std::string& resume, Overwrite overwrite = Overwrite::kNo) const {
    claim_checkpoint_folder(system_disk(), checkpoints(), resume, overwrite, Duration(0), output_);
  }
  std::string checkpoints() const { return folder_.path() + "/checkpoints"; }
  std::string checkpoint(std::uint64_t id) const {
    return storage::CheckpointFolder(system_disk(), checkpoints()).path(id);
  }
  void save(std::uint64_t id) const {
    std::filesystem::create_directories(checkpoint(id));
    storage::commit(system_disk(), checkpoint(id), {.checkpoint = id});
  }
  TempFolder folder_;
  mutable ProgressLine output_;
};

TEST_F(CheckpointClaim, AFolderOfAnotherRunIsRefusedWithTheCure) {
  claim("");  // there is none yet
  save(255);
  try {
    claim("");
    ADD_FAILURE() << "it was taken";
  } catch (const AlreadyExistsError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(checkpoints()), HasSubstr("ckpt-00000255"),
                                    HasSubstr("--resume latest"), HasSubstr("--overwrite")));
  }
  EXPECT_NO_THROW(claim("", Overwrite::kYes));
}

TEST_F(CheckpointClaim, ARunMayGoOnInItsFolderAndNotFromElsewhere) {
  save(255);
  EXPECT_NO_THROW(claim(checkpoint(255)));
  EXPECT_NO_THROW(claim(checkpoint(255) + "/"));
  EXPECT_THROW(claim(folder_.path() + "/other/ckpt-00000001"), AlreadyExistsError);
}

}  // namespace
}  // namespace cairn::tools
