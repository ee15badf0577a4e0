#include "core/disk/disk.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/error.h"
#include "core/disk/memory_disk.h"

namespace cairn {
namespace {

// Both disks keep the same contract; the real one in a folder of its own.
class Disks : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      const char* parent = std::getenv("TEST_TMPDIR");
      std::string pattern =
          std::string(parent != nullptr ? parent : ::testing::TempDir()) + "/cairn-disk-XXXXXX";
      ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
      root_ = pattern;
    } else {
      root_ = "/disk";
      memory_.make_folder(root_);
    }
  }
  void TearDown() override {
    if (GetParam()) disk().remove_tree(root_);
  }
  Disk& disk() { return GetParam() ? system_disk() : static_cast<Disk&>(memory_); }
  std::string root_;
  MemoryDisk memory_;
};

TEST_P(Disks, ANewFileIsWrittenOnceAndNeverReplaced) {
  disk().write_new(root_ + "/a", "first", Disk::SingleWriter::kNo);
  EXPECT_THROW(disk().write_new(root_ + "/a", "second", Disk::SingleWriter::kNo),
               AlreadyExistsError);
  EXPECT_EQ(disk().read(root_ + "/a"), "first");
  EXPECT_EQ(disk().list(root_).size(), 1u);
}

TEST_P(Disks, AWrittenFileReadsBackAndIsReplacedWhole) {
  disk().write_atomically(root_ + "/a", "first");
  disk().write_atomically(root_ + "/a", "second, longer");
  EXPECT_EQ(disk().read(root_ + "/a"), "second, longer");
  EXPECT_EQ(disk().size(root_ + "/a"), 14u);
  EXPECT_EQ(disk().list(root_), std::vector<std::string>{"a"});  // nothing temporary stays
}

TEST_P(Disks, AFileInPiecesIsTheFile) {
  for (const std::size_t size : {0u, 1u, 1u << 20, (9u << 20) + 7}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
    disk().write_atomically(root_ + "/a", bytes);
    std::string pieces;
    disk().read_in_pieces(root_ + "/a", [&](std::string_view piece) { pieces += piece; });
    EXPECT_TRUE(pieces == bytes) << size << " bytes";
  }
  EXPECT_THROW(disk().read_in_pieces(root_ + "/b", [](std::string_view) {}), NotFoundError);
}

TEST_P(Disks, FoldersAreMadeWithParentsListedSortedAndRemovedWhole) {
  disk().make_folder(root_ + "/x/y");
  disk().make_folder(root_ + "/x/y");
  disk().write_atomically(root_ + "/x/y/2", "");
  disk().write_atomically(root_ + "/x/y/1", "");
  EXPECT_EQ(disk().list(root_ + "/x/y"), (std::vector<std::string>{"1", "2"}));
  EXPECT_TRUE(disk().exists(root_ + "/x"));
  disk().remove_tree(root_ + "/x");
  EXPECT_FALSE(disk().exists(root_ + "/x"));
  EXPECT_TRUE(disk().list(root_ + "/x").empty());
}

TEST_P(Disks, RenameMovesFilesAndFolders) {
  disk().make_folder(root_ + "/from");
  disk().write_atomically(root_ + "/from/f", "1");
  disk().rename(root_ + "/from", root_ + "/to");
  disk().rename(root_ + "/to/f", root_ + "/g");
  EXPECT_EQ(disk().read(root_ + "/g"), "1");
  EXPECT_TRUE(disk().list(root_ + "/to").empty());
}

TEST_P(Disks, LinkedFilesStayWhenTheFirstNameGoes) {
  disk().make_folder(root_ + "/old");
  for (const char* name : {"a", "b", "c"}) disk().write_atomically(root_ + "/old/" + name, name);
  disk().link_files(root_ + "/old", root_ + "/new/inner", {"a", "c"});
  disk().remove_tree(root_ + "/old");
  EXPECT_EQ(disk().list(root_ + "/new/inner"), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(disk().read(root_ + "/new/inner/c"), "c");
  EXPECT_THROW(disk().link_files(root_ + "/old", root_ + "/other", {"a"}), NotFoundError);
}

TEST_P(Disks, AMissingFileIsNotFoundAndNamed) {
  try {
    disk().read(root_ + "/none");
    FAIL() << "read a file that is not there";
  } catch (const NotFoundError& e) {
    EXPECT_NE(std::string(e.what()).find(root_ + "/none"), std::string::npos);
  }
  EXPECT_THROW(disk().size(root_ + "/none"), NotFoundError);
  EXPECT_THROW(disk().write_atomically(root_ + "/no/folder", "x"), NotFoundError);
  EXPECT_NO_THROW(disk().remove(root_ + "/none"));
}

INSTANTIATE_TEST_SUITE_P(, Disks, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "System" : "Memory"; });

TEST(MemoryDiskFaults, AFullDiskKeepsTheOldFile) {
  MemoryDisk disk;
  disk.write_atomically("f", "old");
  disk.set_capacity(6);
  EXPECT_THROW(disk.write_atomically("f", "too long"), ResourceExhaustedError);
  EXPECT_EQ(disk.read("f"), "old");
}

TEST(MemoryDiskFaults, ACrashTearsTheWriteBesideTheTargetAndStopsTheDisk) {
  MemoryDisk disk;
  disk.write_atomically("f", "old");
  disk.crash_at_write(1, 2);
  disk.write_atomically("g", "fine");
  EXPECT_THROW(disk.write_atomically("f", "new"), UnavailableError);
  EXPECT_THROW(disk.read("g"), UnavailableError);
  disk.recover();
  EXPECT_EQ(disk.read("f"), "old");
  EXPECT_EQ(disk.list("."), (std::vector<std::string>{"f", "f.0.tmp", "g"}));
  EXPECT_EQ(disk.read("f.0.tmp"), "ne");
}

TEST(MemoryDiskFaults, BitsRot) {
  MemoryDisk disk;
  disk.write_atomically("f", "abc");
  disk.flip_bit("f", 1);
  EXPECT_EQ(disk.read("f"), "acc");
  disk.truncate("f", 1);
  EXPECT_EQ(disk.read("f"), "a");
}

}  // namespace
}  // namespace cairn
