#include "core/disk/appended_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "core/base/error.h"
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
  AppendedFile(path(), AppendedFile::Existing::kRefuse).write("one");
  AppendedFile file(path(), AppendedFile::Existing::kGoOn);
  EXPECT_EQ(file.size(), 3u);
  file.write(" two");
  EXPECT_EQ(text(), "one two");
  EXPECT_EQ(file.size(), 7u);
}

TEST_F(AppendedFileTest, RefusesAFileThatIsThere) {
  temp_.write("log", "mine");
  EXPECT_THROW(AppendedFile(path(), AppendedFile::Existing::kRefuse), AlreadyExistsError);
  EXPECT_EQ(text(), "mine");
}

TEST_F(AppendedFileTest, KeepsNoPartOfAPieceForWhichThereWasNoRoom) {
  AppendedFile file(path(), AppendedFile::Existing::kRefuse);
  file.write("whole ");
  {
    const FileSizeMax most(10);
    EXPECT_THROW(file.write("too long"), Error);
  }
  EXPECT_EQ(text(), "whole ");
  file.write("again");
  EXPECT_EQ(text(), "whole again");
}

}  // namespace
}  // namespace cairn
