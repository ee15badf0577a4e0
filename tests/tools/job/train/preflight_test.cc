#include "tools/job/train/preflight.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/disk/memory_disk.h"
#include "tests/tools/temp_folder.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {
namespace {
using testing::AllOf;
using testing::HasSubstr;

template <typename F>
std::string error_of(F run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Preflight, AFolderThatTakesFilesIsLeftAsItWas) {
  MemoryDisk disk;
  disk.make_folder("/run");
  try_folder(disk, "/run/checkpoints", "checkpoints", "name another");
  EXPECT_TRUE(disk.list("/run/checkpoints").empty());
  EXPECT_EQ(disk.bytes_used(), 0u);
}

TEST(Preflight, AFullDiskIsToldWithWhatWasToBeWrittenAndTheCure) {
  MemoryDisk disk;
  disk.set_capacity(100);
  EXPECT_THAT(
      error_of([&] {
        try_folder(disk, "/run/checkpoints", "checkpoints", "name another with --checkpoints");
      }),
      AllOf(HasSubstr("checkpoints"), HasSubstr("/run/checkpoints"), HasSubstr("--checkpoints")));
  EXPECT_THROW(try_folder(disk, "/run/checkpoints", "checkpoints", ""), ResourceExhaustedError);
}

TEST(Preflight, AFileInAFolderThatIsNotThereAndAFolderInItsPlaceAreRefused) {
  TempFolder folder;
  try_file(system_disk(), folder.path() + "/report.json", "report", "");
  EXPECT_THROW(try_file(system_disk(), folder.path() + "/no/report.json", "report", ""), Error);
  EXPECT_THROW(try_file(system_disk(), folder.path(), "report", ""), Error);
  EXPECT_TRUE(system_disk().list(folder.path()).empty());
}

TEST(Preflight, TestDataIsReadToItsLastCell) {
  TempFolder folder;
  folder.write("train.csv", "1,0\n2,1\n3,1\n");
  folder.write("test.csv", "1,0\n2,1\nthree,1\n");
  folder.write("job.toml",
               "[data]\ntrain = 'train.csv'\ntest = 'test.csv'\n[data.csv]\ncolumns = "
               "['x:float32', 'y:float32']\n"
               "label = {column = 'y'}\n[features]\nnumeric = 'x'\n");
  const Job job = read_job(folder.path() + "/job.toml");
  const FittedFeatures features = fit_features(job);
  EXPECT_THAT(error_of([&] { try_judged_data(job, features); }),
              AllOf(HasSubstr("test.csv:3:1"), HasSubstr("three")));
}

}  // namespace
}  // namespace cairn::tools
