#include "core/disk/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/error.h"

namespace cairn {
namespace {
namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() {
    const char* parent = std::getenv("TEST_TMPDIR");
    folder_ = (parent != nullptr ? std::string(parent) : fs::temp_directory_path().string()) +
              "/cairn-XXXXXX";
    if (::mkdtemp(folder_.data()) == nullptr) ADD_FAILURE() << "no temporary folder at " << folder_;
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::string& path, const std::string& text) {
    OutputFile out(path);
    out.write(text);
    out.finish();
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::string folder_;
};

TEST_F(OutputFileTest, ReplacesARegularFileAsAWhole) {
  std::ofstream(file("a")) << "something longer";
  {
    OutputFile out(file("a"));
    out.write("new");
    EXPECT_EQ(read(file("a")), "something longer");
    out.finish();
  }
  EXPECT_EQ(read(file("a")), "new");
  { OutputFile(file("a")).write("never finished"); }
  EXPECT_EQ(read(file("a")), "new");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, FollowsASymbolicLinkAndLeavesIt) {
  fs::create_directory(file("elsewhere"));
  fs::create_symlink("elsewhere/b", file("link"));  // which is not there yet
  write(file("link"), "first");
  EXPECT_TRUE(fs::is_symlink(file("link")));
  EXPECT_EQ(read(file("elsewhere/b")), "first");
  write(file("link"), "second");
  EXPECT_TRUE(fs::is_symlink(file("link")));
  EXPECT_EQ(read(file("elsewhere/b")), "second");
}

TEST_F(OutputFileTest, WritesToADeviceInsteadOfReplacingIt) {
  fs::create_symlink("/dev/null", file("null"));
  write(file("null"), "gone");
  EXPECT_TRUE(fs::is_symlink(file("null")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, WritesIntoAFifo) {
  ASSERT_EQ(::mkfifo(file("fifo").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = read(file("fifo")); });
  write(file("fifo"), "through");
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(file("fifo")));
}

TEST_F(OutputFileTest, AddsToWhatStandardOutputWasSentTo) {
  std::ofstream(file("log")) << "before\n";
  const int fd = ::open(file("log").c_str(), O_WRONLY | O_APPEND);
  write("/proc/self/fd/" + std::to_string(fd), "after\n");
  ::close(fd);
  EXPECT_EQ(read(file("log")), "before\nafter\n");
}

TEST_F(OutputFileTest, RefusesAFolderAndALoopOfLinks) {
  EXPECT_THROW(OutputFile{folder_}, InvalidArgumentError);
  fs::create_symlink("b", file("a"));
  fs::create_symlink("a", file("b"));
  EXPECT_THROW(OutputFile{file("a")}, InvalidArgumentError);
  EXPECT_THROW(OutputFile{file("no/such/folder")}, NotFoundError);
}

}  // namespace
}  // namespace cairn
