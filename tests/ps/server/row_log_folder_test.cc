#include "ps/server/row_log_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "core/base/error.h"
#include "tests/tools/temp_folder.h"

namespace cairn::ps {
namespace {

TEST(RowLogFolder, FoldersOfTheDeadGoAndThoseOfTheLivingStay) {
  const tools::TempFolder shared;
  const std::string left = shared.path() + "/ps-3-99", other = shared.path() + "/mine";
  for (const std::string& folder : {left, other}) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/lock");
  }
  std::optional<RowLogFolder> living(std::in_place, shared.path(), "ps-0");
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(other));
  {
    const RowLogFolder second(shared.path(), "ps-1");
    EXPECT_TRUE(std::filesystem::exists(living->path()));
    EXPECT_TRUE(std::filesystem::exists(second.path()));
  }
  const std::string path = living->path();
  living.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RowLogFolder, AFolderThatCannotBeMadeIsNamed) {
  const tools::TempFolder shared;
  std::ofstream(shared.path() + "/file");
  try {
    const RowLogFolder folder(shared.path() + "/file", "ps-0");
    FAIL();
  } catch (const PermissionDeniedError& error) {
    EXPECT_NE(std::string(error.what()).find(shared.path() + "/file/ps-0-"), std::string::npos);
  }
}

}  // namespace
}  // namespace cairn::ps
