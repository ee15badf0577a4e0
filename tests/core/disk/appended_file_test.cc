#include "core/disk/appended_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "core/disk/memory_disk.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

class AppendedFileTest : public ::testing::Test {
 protected:
  std::string path() const { return temp_.path() + "/log"; }
  std::string text() const { return temp_.read("log"); }

  tools::TempFolder temp_;
};

// Files of this process cannot grow beyond so many bytes while it lives.
class FileSizeMax {
 public:
  explicit FileSizeMax(rlim_t bytes) : before_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &limit_);
    const rlimit less{bytes, limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &less);
  }
  ~FileSizeMax() {
    ::setrlimit(RLIMIT_FSIZE, &limit_);
    std::signal(SIGXFSZ, before_);
  }

 private:
  void (*before_)(int);
  rlimit limit_{};
};

TEST_F(AppendedFileTest, GoesOnBehindWhatIsThere) {
  system_disk().append(path(), AppendedFile::Existing::kRefuse)->write("one");
  const auto file = system_disk().append(path(), AppendedFile::Existing::kGoOn);
  EXPECT_EQ(file->size(), 3u);
  file->write(" two");
  file->sync();
  EXPECT_EQ(text(), "one two");
  EXPECT_EQ(file->size(), 7u);
}

TEST_F(AppendedFileTest, RefusesAFileThatIsThere) {
  temp_.write("log", "mine");
  EXPECT_THROW(system_disk().append(path(), AppendedFile::Existing::kRefuse), AlreadyExistsError);
  EXPECT_EQ(text(), "mine");
}

TEST_F(AppendedFileTest, KeepsNoPartOfAPieceForWhichThereWasNoRoom) {
  const auto file = system_disk().append(path(), AppendedFile::Existing::kRefuse);
  file->write("whole ");
  {
    const FileSizeMax most(10);
    EXPECT_THROW(file->write("too long"), Error);
  }
  EXPECT_EQ(text(), "whole ");
  file->write("again");
  EXPECT_EQ(text(), "whole again");
}

TEST(SimulatedAppendedFile, IsAFileLikeAnyOther) {
  MemoryDisk disk;
  disk.make_folder("logs");
  const auto file = disk.append("logs/one", AppendedFile::Existing::kRefuse);
  file->write("one");
  file->write(" two");
  EXPECT_EQ(disk.read("logs/one"), "one two");
  EXPECT_EQ(file->size(), 7u);
  EXPECT_THROW(disk.append("logs/one", AppendedFile::Existing::kRefuse), AlreadyExistsError);
  disk.append("logs/one", AppendedFile::Existing::kGoOn)->write(" three");
  EXPECT_EQ(disk.read("logs/one"), "one two three");
  EXPECT_THROW(disk.append("elsewhere/one", AppendedFile::Existing::kGoOn), NotFoundError);
}

TEST(SimulatedAppendedFile, LosesWithThePowerSomeOfWhatWasNotSynced) {
  for (const auto& [kept, left] :
       {std::pair(0, "synced"), std::pair(50, "synced, the"), std::pair(100, "synced, the rest")}) {
    MemoryDisk disk;
    disk.set_unsynced_kept(kept);
    const auto file = disk.append("log", AppendedFile::Existing::kRefuse);
    file->write("synced");
    file->sync();
    file->write(", the");
    file->write(" rest");
    disk.crash_at_step(0, MemoryDisk::Moment::kBefore);
    EXPECT_THROW(file->sync(), UnavailableError);
    EXPECT_THROW(file->write("more"), UnavailableError);
    disk.recover();
    EXPECT_EQ(disk.read("log"), left);
    file->write("!");
    EXPECT_EQ(disk.read("log"), left + std::string("!"));
  }
}

TEST(SimulatedAppendedFile, IsTornWithinAPiece) {
  MemoryDisk disk;
  disk.set_unsynced_kept(100);
  const auto file = disk.append("log", AppendedFile::Existing::kRefuse);
  file->write("whole ");
  disk.crash_at_step(0, MemoryDisk::Moment::kWithin);
  EXPECT_THROW(file->write("tail"), UnavailableError);
  disk.recover();
  EXPECT_EQ(disk.read("log"), "whole ta");
}

TEST(SimulatedAppendedFile, KeepsNothingOfAPieceThatDoesNotFit) {
  MemoryDisk disk;
  const auto file = disk.append("log", AppendedFile::Existing::kRefuse);
  file->write("whole");
  disk.set_capacity(8);
  EXPECT_THROW(file->write("tail"), ResourceExhaustedError);
  EXPECT_EQ(disk.read("log"), "whole");
}

}  // namespace
}  // namespace cairn
