// Where databases lie by their names, and how local ones are looked for elsewhere.
#include "storage/database_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/disk/memory_disk.h"

namespace cairn::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

constexpr const char* kRowsA = "rows-00000000000000aa-00000001";
constexpr const char* kRowsB = "rows-00000000000000aa-00000002";

DatabaseInfo local_database(int ps, const std::string& rows) {
  const std::string name = str("/data/ps-", ps, "/", rows, "/ps-", ps, "-shard-0");
  return {.name = name,
          .rows = 7,
          .bytes = 4,
          .files = {{name + "/000001.sst", 4, 99}},
          .task = str("/job:ps/task:", ps),
          .parts = {{"v", {0, 10}}, {"w", {5, 9}}}};
}

TEST(DatabasePlace, OfALocalDatabaseIsItsName) {
  const std::string name = local_database(1, kRowsA).name;
  EXPECT_EQ(place_of("/c/ckpt-00000001", name), name);
  EXPECT_EQ(place_of("/c/ckpt-00000001", "ps-0-shard-0"), "/c/ckpt-00000001/ps-0-shard-0");
  EXPECT_EQ(local_rows_of(name), str("/data/ps-1/", kRowsA));
  EXPECT_EQ(rows_folder_of(name), kRowsA);
  EXPECT_NO_THROW(verify_database_name(name));
}

TEST(DatabasePlace, IsNowhereButInAFolderOfRows) {
  for (const std::string& bad :
       {str("/data/../x/", kRowsA, "/ps-0-shard-0"), str("/data//", kRowsA, "/ps-0-shard-0"),
        str("/data/", kRowsA, "/"), str("/data/", kRowsA), std::string("/etc/passwd"),
        std::string("/data/rows-1/ps-0-shard-0"), str("data/", kRowsA, "/ps-0-shard-0")}) {
    EXPECT_THROW(verify_database_name(bad), InvalidArgumentError) << bad;
    EXPECT_EQ(local_rows_of(bad), "") << bad;
  }
}

TEST(DatabasePlace, AManifestKeepsItWithItsTaskAndPartsAndHasAFormatOfItsOwn) {
  Manifest manifest{.checkpoint = 3, .databases = {local_database(0, kRowsA)}};
  const std::string text = to_text(manifest);
  EXPECT_THAT(text, HasSubstr("\"format\": 5"));
  EXPECT_EQ(parse_manifest(text, "there"), manifest);
  EXPECT_THAT(to_text({.databases = {{.name = "ps-0-shard-0"}}}),
              AllOf(HasSubstr("\"format\": 2"), Not(HasSubstr("\"task\""))));
}

TEST(DatabasePlace, OfADeltaTellsWhichDatabasesAreItsOwn) {
  const Manifest delta{.databases = {local_database(0, kRowsA), local_database(1, kRowsA),
                                     local_database(0, kRowsB), local_database(1, kRowsB)},
                       .base = "ckpt-00000001"};
  EXPECT_FALSE(is_own(delta, delta.databases[0]) || is_own(delta, delta.databases[1]));
  EXPECT_TRUE(is_own(delta, delta.databases[2]) && is_own(delta, delta.databases[3]));
}

TEST(DatabasePlace, ThatIsOnAnotherMachineIsAnErrorWithTaskPathAndCure) {
  MemoryDisk disk;
  const Manifest manifest{.databases = {local_database(0, kRowsA), local_database(1, kRowsA)}};
  disk.make_folder(manifest.databases[0].name);
  disk.write_atomically(manifest.databases[0].files[0].name, "rows");
  EXPECT_THAT([&] { verify_here(disk, "/c/ckpt-00000003", manifest); },
              ThrowsMessage<NotFoundError>(
                  AllOf(HasSubstr("/c/ckpt-00000003"), HasSubstr(manifest.databases[1].name),
                        HasSubstr("/job:ps/task:1"), HasSubstr("--database-folder ps:1=FOLDER"),
                        HasSubstr("cairn ckpt copy"))));
  Manifest mounted = manifest;
  DatabaseFolders({"ps:1=/mnt/one/"}).apply(mounted);
  EXPECT_EQ(mounted.databases[0], manifest.databases[0]);
  EXPECT_EQ(mounted.databases[1].name, str("/mnt/one/", kRowsA, "/ps-1-shard-0"));
  EXPECT_EQ(mounted.databases[1].files[0].name,
            str("/mnt/one/", kRowsA, "/ps-1-shard-0/000001.sst"));
  disk.make_folder(mounted.databases[1].name);
  disk.write_atomically(mounted.databases[1].files[0].name, "rows");
  EXPECT_NO_THROW(verify_here(disk, "/c/ckpt-00000003", mounted));
}

TEST(DatabaseFolders, RefusesWhatIsNoTaskWithAFolder) {
  for (const char* bad : {"ps:1", "ps:1=", "ps=/mnt", "ps:x=/mnt", "worker:0=/mnt", "=/mnt"})
    EXPECT_THAT([&] { DatabaseFolders({bad}); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("expected TASK=FOLDER")))
        << bad;
  EXPECT_THROW(DatabaseFolders({"ps:1=/a", "ps:1=/b"}), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::storage
