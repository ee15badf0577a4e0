#include "core/base/processors.h"

#include <gmock/gmock.h>

#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

// Control groups as files of a folder, below "mount".
struct Groups {
  tools::TempFolder folder;
  void write(const std::string& group, const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(folder.path() + "/mount" + group);
    folder.write("mount" + group + "/" + file, text);
  }
  std::size_t usable(std::size_t affinity, const std::string& groups) const {
    folder.write("groups", groups);
    return usable_processors(affinity, {folder.path() + "/groups", folder.path() + "/mount"});
  }
};

TEST(UsableProcessors, AreThoseOfTheMaskWhereNoGroupHasALimit) {
  const Groups groups;
  EXPECT_EQ(groups.usable(5, ""), 5u);
  EXPECT_EQ(groups.usable(5, "0::/user.slice/a\n"), 5u) << "the group is not to be seen";
  groups.write("/user.slice/a", "cpu.max", "max 100000\n");
  EXPECT_EQ(groups.usable(5, "0::/user.slice/a\n"), 5u);
  EXPECT_GE(usable_processors(), 1u);
}

TEST(UsableProcessors, AreFewerWhereAGroupOfVersion2AllowsLessTime) {
  const Groups groups;
  groups.write("/pod/a", "cpu.max", "250000 100000\n");
  EXPECT_EQ(groups.usable(8, "0::/pod/a\n"), 3u) << "two and a half";
  EXPECT_EQ(groups.usable(2, "0::/pod/a\n"), 2u);
  groups.write("/pod", "cpu.max", "50000 100000\n");
  EXPECT_EQ(groups.usable(8, "0::/pod/a\n"), 1u) << "the limit of a group above";
  EXPECT_EQ(groups.usable(8, "0::/\n"), 8u);
}

// The name of the group is the host's, and its files lie at the root of the mount.
TEST(UsableProcessors, AContainerFindsItsLimitAtTheRoot) {
  const Groups groups;
  groups.write("", "cpu.max", "400000 100000\n");
  EXPECT_EQ(groups.usable(64, "0::/kubepods/burstable/pod7/c1\n"), 4u);
}

TEST(UsableProcessors, AreFewerWhereAGroupOfVersion1AllowsLessTime) {
  const Groups groups;
  groups.write("/cpu,cpuacct/docker/a", "cpu.cfs_quota_us", "150000\n");
  groups.write("/cpu,cpuacct/docker/a", "cpu.cfs_period_us", "100000\n");
  const std::string lines = "11:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n0::/docker/a\n";
  EXPECT_EQ(groups.usable(8, lines), 2u);
  groups.write("/cpu,cpuacct/docker/a", "cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(groups.usable(8, lines), 8u);
  groups.write("/cpu", "cpu.cfs_quota_us", "300000\n");
  groups.write("/cpu", "cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(groups.usable(8, "1:cpu:/\n"), 3u);
}

TEST(UsableProcessors, FilesOfAnotherFormAreNoLimit) {
  const Groups groups;
  groups.write("", "cpu.max", "much 0\n");
  EXPECT_EQ(groups.usable(8, "nonsense\n::\n0::relative\n"), 8u);
}

TEST(ShareOfProcessors, IsTheSameForEachTaskAndSaysWhy) {
  const ThreadBound bound{8, "more only when asked for"};
  EXPECT_EQ(share_of_processors(16, 4, bound).threads, 4u);
  EXPECT_EQ(share_of_processors(16, 4, bound).why, "16 processors for 4 tasks of this host");
  EXPECT_EQ(share_of_processors(7, 2, bound).threads, 3u);
  EXPECT_EQ(share_of_processors(2, 4, bound).threads, 1u);
  EXPECT_EQ(share_of_processors(1, 1, bound).why, "1 processor");
  EXPECT_EQ(share_of_processors(9, 1, bound).threads, 8u);
  EXPECT_EQ(share_of_processors(9, 1, bound).why, "9 processors; more only when asked for");
}

TEST(ShareOfProcessors, LanesAreBoundedOverAllWorkers) {
  EXPECT_EQ(lanes_bound(1).most, 16u);
  EXPECT_EQ(lanes_bound(3).most, 5u);
  EXPECT_EQ(lanes_bound(40).most, 1u);
  EXPECT_THAT(lanes_bound(1).why, HasSubstr("accuracy"));
}

}  // namespace
}  // namespace cairn
