// Checkpoints that are damaged in one place each: what is lost is told, and all else is kept.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/tools/ckpt/checkpoint_fixture.h"

namespace cairn::tools::ckpt {
namespace {

using testing::HasSubstr;

constexpr std::size_t kRows = 20'000;  // of the dense variable: some eight blocks in two databases
constexpr std::uint64_t kRowsABlock = 2 * 2731;  // two records may share a block of the file

class RepairTest : public CkptTest {
 protected:
  void SetUp() override {
    sound_ = make({.dense_rows = kRows}, "sound");
    damaged_ = make({.dense_rows = kRows});
  }
  // The one sorted file of a database, relative to the test's folder.
  std::string sorted_file(const std::string& database) const {
    const std::string folder = "checkpoints/ckpt-00000001/" + database + "/";
    for (const std::string& name : system_disk().list(file(folder)))
      if (name.ends_with(".sst")) return folder + name;
    ADD_FAILURE() << "no sorted file in " << folder;
    return "";
  }
  // Repairs; what comes out is sound, and differs from the undamaged checkpoint in rows that are
  // missing alone.
  //   Result  what the command said of the damaged database
  Json repaired(std::size_t database) {
    EXPECT_EQ(ckpt({"repair", damaged_, "--out", file("repaired"), "--json"}), 1) << output();
    const Json said = json();
    EXPECT_EQ(ckpt({"verify", file("repaired")}), 0) << output();
    const int status = ckpt({"diff", sound_, file("repaired"), "--json"});
    std::uint64_t missing = 0, lost = 0;
    const Json compared = json();
    for (const Json& variable : compared["variables"]) {
      EXPECT_EQ(variable["differ"], 0);
      EXPECT_EQ(variable["only_b"], 0);
      missing += variable["only_a"].get<std::uint64_t>();
    }
    for (const Json& each : said["databases"]) lost += each["rows_lost"].get<std::uint64_t>();
    EXPECT_EQ(missing, lost);
    EXPECT_EQ(status, lost == 0 ? 0 : 1);
    return said["databases"][database];
  }
  std::string sound_, damaged_;
};

TEST_F(RepairTest, ASoundCheckpointIsLeftAlone) {
  EXPECT_EQ(ckpt({"repair", damaged_, "--out", file("repaired")}), 0);
  EXPECT_THAT(output(), HasSubstr("nothing was written"));
  EXPECT_FALSE(system_disk().exists(file("repaired")));
}

TEST_F(RepairTest, AFlippedByteCostsItsBlockAloneWhichIsNamed) {
  const std::string name = sorted_file("ps-0-shard-0");
  std::string bytes = folder_.read(name);
  bytes[bytes.size() / 2] ^= 0x10;
  folder_.write(name, bytes);
  const Json said = repaired(0);
  EXPECT_GT(said["rows_lost"].get<std::uint64_t>(), 0u);
  EXPECT_LE(said["rows_lost"].get<std::uint64_t>(), kRowsABlock);
  const Json lost = said["lost_within"][0];
  EXPECT_EQ(lost["variable"], "dense/kernel");
  EXPECT_EQ(lost["end"].get<std::uint64_t>() - lost["begin"].get<std::uint64_t>(),
            said["rows_lost"].get<std::uint64_t>());
  EXPECT_THAT(lost["why"].get<std::string>(), HasSubstr(".sst"));
  const storage::Manifest manifest = storage::read_manifest(system_disk(), file("repaired"));
  EXPECT_EQ(parse_json(manifest.metadata, "metadata")["repaired"]["from"], damaged_);
}

TEST_F(RepairTest, ADamagedLengthCostsItsBlockAndWhatFollowsIsFound) {
  const std::string name = sorted_file("ps-1-shard-0");
  std::string bytes = folder_.read(name);
  // The lengths stand right before a record's key.
  const std::string key(
      "\0\x0c"
      "dense/kernel\x02",
      15);
  std::size_t at = bytes.find(key);
  at = bytes.find(key, at + 1);
  ASSERT_NE(at, std::string::npos);
  for (std::size_t i = 1; i <= 3; ++i) bytes[at - i] = '\xff';
  folder_.write(name, bytes);
  const Json said = repaired(1);
  EXPECT_GT(said["rows_lost"].get<std::uint64_t>(), 0u);
  EXPECT_LE(said["rows_lost"].get<std::uint64_t>(), kRowsABlock);
}

TEST_F(RepairTest, AFileThatIsCutOrGoneCostsItsOwnRowsAndTheOtherDatabasesKeepTheirs) {
  const std::string name = sorted_file("ps-0-shard-0");
  std::filesystem::resize_file(file(name), 1000);
  const Json said = repaired(0);
  EXPECT_EQ(said["rows_saved"], 0);
  EXPECT_EQ(said["rows_lost"], kRows / 2 + 3);
  std::filesystem::remove(file(name));
  std::filesystem::remove_all(file("repaired"));
  EXPECT_EQ(repaired(0)["rows_lost"], kRows / 2 + 3);
}

TEST_F(RepairTest, ADatabaseWithoutItsDescriptorLosesNoRow) {
  folder_.write("checkpoints/ckpt-00000001/ps-0-shard-0/CURRENT", "nonsense\n");
  EXPECT_EQ(repaired(0)["rows_lost"], 0);
}

TEST_F(RepairTest, ALostTableRecordIsMadeAnewAndTold) {
  const std::string name = sorted_file("ps-1-shard-0");
  std::string bytes = folder_.read(name);
  bytes[100] ^= 1;  // in the first block, which begins with the tables
  folder_.write(name, bytes);
  const Json said = repaired(1);
  EXPECT_LE(said["rows_lost"].get<std::uint64_t>(), kRowsABlock);
  EXPECT_EQ(said["update_counts_lost"], Json({"dense/kernel"}));
}

}  // namespace
}  // namespace cairn::tools::ckpt
