// The configuration of a cluster, and where it is kept.
#include "coordinator/journal/config_store.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "coordinator/journal/cluster_config.h"
#include "core/base/error.h"
#include "core/disk/memory_disk.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FileConfigStores : public ::testing::Test {
 protected:
  std::unique_ptr<ConfigStore> store() { return make_file_config_store(disk_, "/config"); }
  std::string newest() { return store()->read().text; }

  MemoryDisk disk_;
};

TEST_F(FileConfigStores, BeginEmpty) {
  EXPECT_EQ(store()->read().number, 0u);
  EXPECT_EQ(newest(), "");
}

TEST_F(FileConfigStores, OnlyWhoHasReadTheNewestVersionReplacesIt) {
  const auto one = store(), other = store();
  EXPECT_TRUE(one->replace(0, "first"));
  EXPECT_FALSE(other->replace(0, "late"));
  EXPECT_EQ(other->read().number, 1u);
  EXPECT_TRUE(other->replace(1, "second"));
  EXPECT_FALSE(one->replace(1, "late"));
  EXPECT_EQ(one->read().text, "second");
}

TEST_F(FileConfigStores, OneThatIsFarBehindReplacesNothingThoughItsFilesAreGone) {
  const auto one = store();
  for (std::uint64_t version = 0; version < 100; ++version) one->replace(version, "text");
  EXPECT_LT(disk_.list("/config").size(), 10u);
  EXPECT_FALSE(store()->replace(3, "late"));
  EXPECT_EQ(one->read().number, 100u);
  EXPECT_EQ(newest(), "text");
}

TEST_F(FileConfigStores, AVersionIsThereAsAWholeOrNotAtAllAfterAPowerLoss) {
  for (const auto moment :
       {MemoryDisk::Moment::kBefore, MemoryDisk::Moment::kWithin, MemoryDisk::Moment::kAfter}) {
    SCOPED_TRACE(static_cast<int>(moment));
    const ConfigStore::Version before = store()->read();
    disk_.crash_at_step(0, moment);
    EXPECT_THROW(store()->replace(before.number, "next"), UnavailableError);
    disk_.recover();
    const ConfigStore::Version after = store()->read();
    EXPECT_TRUE(after.text == before.text || after.text == "next") << after.text;
    EXPECT_TRUE(store()->replace(after.number, "another"));
  }
}

TEST_F(FileConfigStores, ADamagedVersionIsNamed) {
  store()->replace(0, "first");
  disk_.flip_bit("/config/config-1", 12);
  try {
    store()->read();
    ADD_FAILURE() << "it was read";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/config/config-1"), HasSubstr("damaged")));
  }
}

// Real files, and as many writers as want each version.
TEST(FileConfigStore, GivesEachVersionToOneOfManyWriters) {
  constexpr std::uint64_t kVersions = 20;
  const tools::TempFolder folder;
  std::atomic<int> won[kVersions] = {};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      const auto store = make_file_config_store(system_disk(), folder.path());
      for (std::uint64_t version; (version = store->read().number) < kVersions;)
        if (store->replace(version, str(writer))) ++won[version];
    });
  for (std::thread& writer : writers) writer.join();
  // A writer that was slow may find its version replaced, and removed; none of the newest is.
  constexpr std::uint64_t kNewest = 7;
  for (std::uint64_t version = 0; version < kVersions; ++version) {
    EXPECT_LE(won[version], 1) << version;
    if (version + kNewest >= kVersions) EXPECT_EQ(won[version], 1) << version;
  }
}

TEST(ClusterConfigs, ReadAsTheyWereWritten) {
  const std::vector<ShardLayout> shards{{{0, "", 1, 5}, {{1, "", 3, 6}}, 1, 0},
                                        {{0, "", 2, 5}, {}, 2, 1}};
  const ClusterConfig written{"cairn", 7, 3, "pid 4711 on host ada", shards};
  const ClusterConfig read = parse_cluster_config(to_text(written), "the store");
  EXPECT_EQ(read.cluster, "cairn");
  EXPECT_EQ(read.session, 7u);
  EXPECT_EQ(read.term, 3u);
  EXPECT_EQ(read.holder, "pid 4711 on host ada");
  EXPECT_EQ(read.shards, shards);
  EXPECT_EQ(parse_cluster_config("", "the store").term, 0u);
}

TEST(ClusterConfigs, WhatIsNoneIsRefusedAndOneOfANewerReleaseToo) {
  for (const char* text : {"[]", "{", "{}", R"({"format": 2, "cluster": 7})"})
    EXPECT_THROW(parse_cluster_config(text, "the store"), DataLossError) << text;
  try {
    parse_cluster_config(R"({"format": 3})", "the store");
    ADD_FAILURE() << "it was read";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("the store"), HasSubstr("format 3")));
  }
}

}  // namespace
}  // namespace cairn
