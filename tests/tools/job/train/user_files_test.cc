#include "tools/job/train/user_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {
using testing::HasSubstr;

constexpr const char* kReport = R"({"job": "adult", "completed": true, "lost_updates": 0})";

TEST(UserFiles, AReportReplacesAReportAndNothingElse) {
  const TempFolder folder;
  const std::string path = folder.path() + "/file";
  EXPECT_NO_THROW(verify_report_path(path, Overwrite::kNo));  // none
  folder.write("file", "");
  EXPECT_NO_THROW(verify_report_path(path, Overwrite::kNo));
  folder.write("file", kReport);
  EXPECT_NO_THROW(verify_report_path(path, Overwrite::kNo));
  for (const char* other : {"my thesis", R"({"job": "a letter"})", "[1, 2]"}) {
    folder.write("file", other);
    try {
      verify_report_path(path, Overwrite::kNo);
      ADD_FAILURE() << "replaced: " << other;
    } catch (const AlreadyExistsError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path + " is there already"));
      EXPECT_THAT(error.what(), HasSubstr("--overwrite"));
    }
    EXPECT_NO_THROW(verify_report_path(path, Overwrite::kYes));
  }
}

TEST(UserFiles, AReportGoesToADevice) {
  EXPECT_NO_THROW(verify_report_path("/dev/null", Overwrite::kNo));
  EXPECT_NO_THROW(write_report("/dev/null", kReport));
}

TEST(UserFiles, GeneratedDataReplaceNothing) {
  const TempFolder folder;
  folder.write("file", kReport);
  EXPECT_THROW(verify_new_file(folder.path() + "/file", Overwrite::kNo), AlreadyExistsError);
  EXPECT_NO_THROW(verify_new_file(folder.path() + "/file", Overwrite::kYes));
  EXPECT_NO_THROW(verify_new_file(folder.path() + "/other", Overwrite::kNo));
}

}  // namespace
}  // namespace cairn::tools
