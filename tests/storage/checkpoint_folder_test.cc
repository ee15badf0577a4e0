#include "storage/checkpoint_folder.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include <fstream>

#include "core/base/error.h"
#include "core/disk/memory_disk.h"
#include "storage/folder_lock.h"
#include "tests/storage/fixture.h"

namespace cairn::storage {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::pair<std::string, std::string>> all_records(DatabaseReader& reader) {
  std::vector<std::pair<std::string, std::string>> records;
  for (reader.seek(""); reader.valid(); reader.next())
    records.emplace_back(reader.key(), reader.value());
  return records;
}

TEST(RowStore, RocksAndMemoryHoldTheSame) {
  const TempFolder folder;
  MemoryDisk disk;
  const auto rocks = make_rocks_row_store(), memory = make_memory_row_store(disk);
  write_database(*rocks, folder.path() + "/db");
  write_database(*memory, "db");
  const auto from_rocks = rocks->open(folder.path() + "/db"), from_memory = memory->open("db");
  EXPECT_EQ(all_records(*from_rocks), some_records());
  EXPECT_EQ(all_records(*from_memory), some_records());
  for (const RecordKey& key :
       {RecordKey{"a", RecordKind::kRows, 150}, RecordKey{"a", RecordKind::kTable, 0},
        RecordKey{"zz", RecordKind::kRows, 9}}) {
    const std::string bytes = encode(key);
    for (DatabaseReader* reader : {from_rocks.get(), from_memory.get()})
      reader->seek_for_prev(bytes);
    ASSERT_EQ(from_rocks->valid(), from_memory->valid());
    EXPECT_EQ(from_rocks->key(), from_memory->key());
  }
}

// The checksums of sorted files are taken while they are written. Two files, so that each has to
// get its own.
TEST(RowStore, FilesAreListedWithTheSizesAndChecksumsThatTheyHaveOnTheDisk) {
  const TempFolder folder;
  const auto writer = make_rocks_row_store()->create(folder.path() + "/db");
  const std::string value(std::size_t{1} << 20, 'x');
  for (std::int64_t row = 0; row < 70; ++row) {
    const RecordKey key{"a", RecordKind::kRows, row};
    writer->put(encode(key), value + std::to_string(row));
  }
  const std::vector<FileInfo> files = writer->finish();
  std::size_t sorted = 0;
  for (const FileInfo& file : files) {
    sorted += file.name.ends_with(".sst") ? 1 : 0;
    EXPECT_EQ(file, file_info(system_disk(), folder.path() + "/" + file.name, file.name));
  }
  EXPECT_EQ(sorted, 2u);
}

TEST(RowStore, AnEmptyDatabaseIsOne) {
  const TempFolder folder;
  const auto store = make_rocks_row_store();
  store->create(folder.path() + "/db")->finish();
  EXPECT_THAT(all_records(*store->open(folder.path() + "/db")), IsEmpty());
}

TEST(RowStore, AMissingDatabaseIsNotFoundByName) {
  MemoryDisk disk;
  EXPECT_THROW(make_memory_row_store(disk)->open("nowhere"), NotFoundError);
  const TempFolder folder;
  EXPECT_THROW(make_rocks_row_store()->open(folder.path() + "/nowhere"), NotFoundError);
}

TEST(CheckpointFolder, ListsWhatHasAManifestNewestLast) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  CheckpointFolder folder(disk, "c");
  EXPECT_EQ(folder.latest().has_value(), false);
  EXPECT_EQ(folder.next_id(), 1u);
  write_checkpoint(disk, *store, folder.path(9), 9);
  write_checkpoint(disk, *store, folder.path(10), 10);
  write_database(*store, folder.path(11) + "/ps-0-shard-0");  // never committed
  disk.make_folder("c/something else");

  ASSERT_EQ(folder.list().size(), 2u);
  EXPECT_EQ(folder.latest()->path, "c/ckpt-00000010");
  EXPECT_EQ(folder.next_id(), 12u);
}

TEST(CheckpointFolder, PruningKeepsTheNewestWhateverTheyAreDeltasOf) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  CheckpointFolder folder(disk, "c");
  for (std::uint64_t id = 1; id <= 4; ++id) write_checkpoint(disk, *store, folder.path(id), id);
  Manifest delta = write_checkpoint(disk, *store, folder.path(5), 5);
  delta.base = CheckpointFolder::name(3);
  commit(disk, folder.path(5), delta);
  write_database(*store, folder.path(6) + "/ps-0-shard-0");  // the remains of a failed save

  EXPECT_THAT(
      folder.prune(2, {.session = delta.session, .ancestors = {}}),
      ElementsAre("c/ckpt-00000001", "c/ckpt-00000002", "c/ckpt-00000003", "c/ckpt-00000006"));
  std::vector<std::uint64_t> ids;
  for (const CheckpointEntry& entry : folder.list()) ids.push_back(entry.id);
  EXPECT_THAT(ids, ElementsAre(4, 5));
}

std::vector<std::uint64_t> ids_of(const CheckpointFolder& folder) {
  std::vector<std::uint64_t> ids;
  for (const CheckpointEntry& entry : folder.list()) ids.push_back(entry.id);
  return ids;
}

void write_of_session(MemoryDisk& disk, RowStore& store, const CheckpointFolder& folder,
                      std::uint64_t id, std::uint64_t session) {
  Manifest manifest = write_checkpoint(disk, store, folder.path(id), id);
  manifest.session = session;
  commit(disk, folder.path(id), manifest);
}

TEST(CheckpointFolder, PruningLeavesTheCheckpointsOfOtherRunsAlone) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  CheckpointFolder folder(disk, "c");
  write_of_session(disk, *store, folder, 255, 7);  // the good model
  for (const std::uint64_t id : {256, 257, 258}) write_of_session(disk, *store, folder, id, 8);

  EXPECT_THAT(folder.prune(1, {.session = 8, .ancestors = {}}),
              ElementsAre("c/ckpt-00000256", "c/ckpt-00000257"));
  EXPECT_THAT(ids_of(folder), ElementsAre(255, 258));
}

TEST(CheckpointFolder, PruningCountsWhatTheRunWentOnFromAndNotWhatCameAfterThat) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  CheckpointFolder folder(disk, "c");
  for (const std::uint64_t id : {1, 2, 3}) write_of_session(disk, *store, folder, id, 7);
  // resumed from 2
  for (const std::uint64_t id : {4, 5}) write_of_session(disk, *store, folder, id, 8);

  EXPECT_THAT(folder.prune(2, {.session = 8, .ancestors = {{7, 2}}}),
              ElementsAre("c/ckpt-00000001", "c/ckpt-00000002"));
  EXPECT_THAT(ids_of(folder), ElementsAre(3, 4, 5));
}

TEST(CheckpointFolder, PruningKeepsEveryNthByItsNumberBesideTheNewest) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  CheckpointFolder folder(disk, "c");
  for (std::uint64_t id = 1; id <= 9; ++id) {
    write_of_session(disk, *store, folder, id, 8);
    folder.prune(2, {.session = 8, .ancestors = {}}, 3);
  }
  EXPECT_THAT(ids_of(folder), ElementsAre(3, 6, 8, 9));
  folder.prune(2, {.session = 8, .ancestors = {}});
  EXPECT_THAT(ids_of(folder), ElementsAre(8, 9)) << "without the rule they are like others";
}

TEST(CheckpointFolder, PruningLeavesWhatItCannotRead) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  CheckpointFolder folder(disk, "c");
  for (const std::uint64_t id : {1, 2, 3}) write_of_session(disk, *store, folder, id, 8);
  disk.flip_bit(folder.path(1) + "/" + kManifestFile, 40);

  EXPECT_THAT(folder.prune(1, {.session = 8, .ancestors = {}}), ElementsAre("c/ckpt-00000002"));
  EXPECT_THAT(ids_of(folder), ElementsAre(1, 3));
}

void expect_lock_names_its_holder(Disk& disk, const std::string& folder) {
  auto first = lock_folder(disk, folder, system_clock(), Duration(0));
  try {
    lock_folder(disk, folder, system_clock(), Duration(0));
    ADD_FAILURE() << "two have the lock";
  } catch (const FailedPreconditionError& taken) {
    EXPECT_THAT(taken.what(),
                AllOf(HasSubstr(folder), HasSubstr(str("pid ", ::getpid(), " on host ")),
                      HasSubstr(" since 20")));
  }
  first.reset();
  EXPECT_NO_THROW(lock_folder(disk, folder, system_clock(), Duration(0)));
}

TEST(FolderLock, OneHasItAndIsNamed) {
  MemoryDisk memory;
  expect_lock_names_its_holder(memory, "c");
  const TempFolder folder;
  expect_lock_names_its_holder(system_disk(), folder.path() + "/c");
}

TEST(Verify, ASoundCheckpointIsReadWhole) {
  const TempFolder folder;
  const auto store = make_rocks_row_store();
  write_checkpoint(system_disk(), *store, folder.path() + "/ckpt-00000001");
  const VerifyReport report = verify(system_disk(), *store, folder.path() + "/ckpt-00000001");
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.rows, kSomeRows);
  EXPECT_EQ(report.blocks, 22u);
}

// One kind of damage to one file, and the words that the report has to say.
void expect_found(const std::function<void(const std::string& path)>& damage, const char* words) {
  const TempFolder folder;
  const std::string path = folder.path() + "/ckpt-00000001";
  const auto store = make_rocks_row_store();
  const Manifest manifest = write_checkpoint(system_disk(), *store, path);
  for (const FileInfo& file : manifest.databases.at(0).files) {
    if (!file.name.ends_with(".sst")) continue;
    damage(path + "/" + file.name);
    EXPECT_THAT(verify(system_disk(), *store, path).problems,
                ElementsAre(AllOf(HasSubstr(file.name), HasSubstr(words))));
  }
}

TEST(Verify, AFlippedByteIsFoundAndNamed) {
  expect_found(
      [](const std::string& path) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(5000);
        const char byte = static_cast<char>(file.get() ^ 1);
        file.seekp(5000);
        file.put(byte);
      },
      "changed");
}
TEST(Verify, ACutFileIsFoundAndNamed) {
  expect_found([](const std::string& path) { std::filesystem::resize_file(path, 4000); },
               "4000 bytes");
}
TEST(Verify, AMissingFileIsFoundAndNamed) {
  expect_found([](const std::string& path) { std::filesystem::remove(path); }, "missing");
}

TEST(Verify, AFlippedBitOfTheManifestIsFoundAndNamed) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  write_checkpoint(disk, *store, "c/ckpt-00000001");
  disk.flip_bit("c/ckpt-00000001/MANIFEST.json", 40);
  EXPECT_THAT(verify(disk, *store, "c/ckpt-00000001").problems,
              ElementsAre(HasSubstr("c/ckpt-00000001/MANIFEST.json")));
}

// Restoring does not check whole files first: the block itself has to tell.
TEST(Verify, TheNewestOlderCheckpointThatIsSoundIsFound) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  const CheckpointFolder folder(disk, "c");
  for (const std::uint64_t id : {1, 2, 3, 4, 5}) write_of_session(disk, *store, folder, id, 8);
  disk.flip_bit(folder.path(3) + "/ps-0-shard-0/rows", 400);
  EXPECT_EQ(newest_sound_before(disk, *store, folder.path(5)), folder.path(4));
  EXPECT_EQ(newest_sound_before(disk, *store, folder.path(4)), folder.path(2));
  EXPECT_EQ(newest_sound_before(disk, *store, folder.path(1)), "");
  EXPECT_EQ(newest_sound_before(disk, *store, "c/mine"), "") << "it has no number";
}

TEST(Rot, InsideABlockIsFoundWhileReading) {
  const TempFolder folder;
  const auto store = make_rocks_row_store();
  for (const FileInfo& file : write_database(*store, folder.path() + "/db")) {
    if (!file.name.ends_with(".sst")) continue;
    std::fstream rotten(folder.path() + "/" + file.name,
                        std::ios::in | std::ios::out | std::ios::binary);
    rotten.seekp(5000);
    rotten.put('\x5a');
    rotten.put('\xa5');
  }
  EXPECT_THROW(
      {
        const auto reader = store->open(folder.path() + "/db");
        for (const auto& [key, value] : all_records(*reader))
          if (decode_key(key).kind == RecordKind::kRows) decode_rows(key, value);
      },
      DataLossError);
}

TEST(RowStore, AFullDiskIsReportedAndLeavesNoCheckpoint) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  disk.set_capacity(1000);
  EXPECT_THROW(write_checkpoint(disk, *store, "c/ckpt-00000001"), ResourceExhaustedError);
  EXPECT_THAT(CheckpointFolder(disk, "c").list(), IsEmpty());
}

}  // namespace
}  // namespace cairn::storage
