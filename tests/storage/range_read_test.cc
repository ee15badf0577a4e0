#include "storage/range_read.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/disk/memory_disk.h"
#include "tests/storage/fixture.h"

namespace cairn::storage {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RangeRead, AnyRangeOfAnyCutFindsItsRows) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  write_database(*store, "db");
  const auto reader = store->open("db");
  for (const RowRange range :
       {RowRange{0, 1000}, {0, 1}, {99, 101}, {250, 250}, {333, 667}, {999, 1000}}) {
    RangeRead read(*reader, "b", range);
    EXPECT_THAT(read.tables(), ElementsAre(some_table("b", {0, 1000})));
    std::vector<StoredRows> blocks;
    while (read.read(blocks, 1000)) {
    }
    std::int64_t found = 0, expected = 0;
    for (const StoredRows& block : blocks)
      for (const std::uint64_t offset : block.offsets) {
        const std::int64_t row = block.first_row + static_cast<std::int64_t>(offset);
        found += row >= range.begin && row < range.end;
      }
    for (std::int64_t row = range.begin; row < range.end; ++row) expected += row % 100 % 3 == 0;
    EXPECT_EQ(found, expected) << range.begin << " to " << range.end;
  }
  EXPECT_THAT(RangeRead(*reader, "c", {0, 10}).tables(), IsEmpty());
}

// Blocks of a hashed variable overlap: each of these three reaches over the next ones.
TEST(RangeRead, FindsEveryRowOfAHashedVariable) {
  const TempFolder folder;
  const auto store = make_rocks_row_store();
  const auto writer = store->create(folder.path() + "/db");
  TableRecord table = some_table("h", {0, 1000});
  table.blocks_overlap = true;
  const std::string key = encode(RecordKey{"h", RecordKind::kTable, 0});
  writer->put(key, encode(key, table));
  for (const std::int64_t first : {3, 5, 400}) {
    const std::string rows = encode(RecordKey{"h", RecordKind::kRows, first});
    writer->put(rows, encode(rows, some_rows(first, {0, 500})));
  }
  writer->finish();
  const auto reader = store->open(folder.path() + "/db");
  const auto rows_in = [&](RowRange range) {
    RangeRead read(*reader, "h", range);
    EXPECT_EQ(read.tables().size(), 1u);
    std::vector<StoredRows> blocks;
    while (read.read(blocks, 1)) {
    }
    std::vector<std::int64_t> found;
    for (const StoredRows& block : blocks)
      for (const std::uint64_t offset : block.offsets)
        if (const auto row = block.first_row + static_cast<std::int64_t>(offset);
            row >= range.begin && row < range.end)
          found.push_back(row);
    return found;
  };
  EXPECT_THAT(rows_in({0, 1000}), ElementsAre(3, 503, 5, 505, 400, 900));
  EXPECT_THAT(rows_in({450, 504}), ElementsAre(503));
  EXPECT_THAT(rows_in({505, 901}), ElementsAre(505, 900));
  EXPECT_THAT(rows_in({1000, 2000}), IsEmpty());
}

TEST(RangeRead, ADatabaseOutsideTheFolderIsRefused) {
  for (const char* name : {"", ".", "..", "../other", "/etc"})
    EXPECT_THROW(verify_database_name(name), InvalidArgumentError);
}

// ---- how much is read ----

constexpr std::int64_t kSpread = std::int64_t{1} << 40;

TableRecord spread_table(RowRange part) {
  TableRecord table = some_table("spread", part);
  table.shape = Shape{kSpread, 4};
  return table;
}

// Part `part` of a hashed variable, of which `blocks` blocks of random ids are held, in the order
// of the ids.
std::vector<std::int64_t> write_spread(RowStore& store, const std::string& folder, RowRange part,
                                       std::size_t blocks) {
  constexpr std::size_t kRowsABlock = 400;
  Random random(static_cast<std::uint64_t>(part.begin) + 1);
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < blocks * kRowsABlock; ++i)
    ids.push_back(part.begin +
                  static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(part.size()))));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const auto writer = store.create(folder);
  const std::string key = encode(RecordKey{"spread", RecordKind::kTable, part.begin});
  writer->put(key, encode(key, spread_table(part)));
  for (std::size_t at = 0; at < ids.size(); at += kRowsABlock) {
    std::vector<std::uint64_t> offsets;
    for (std::size_t i = at; i < std::min(ids.size(), at + kRowsABlock); ++i)
      offsets.push_back(static_cast<std::uint64_t>(ids[i] - ids[at]));
    const std::string rows = encode(RecordKey{"spread", RecordKind::kRows, ids[at]});
    writer->put(rows, encode(rows, some_rows(ids[at], std::move(offsets))));
  }
  writer->finish();
  return ids;
}

std::vector<std::string> write_spread(RowStore& store, const std::string& folder,
                                      std::vector<std::int64_t>& ids) {
  std::vector<std::string> databases;
  for (const RowRange part : split_rows(kSpread, 3)) {
    databases.push_back(str(folder, "/", databases.size()));
    const auto held = write_spread(store, databases.back(), part, 500);
    ids.insert(ids.end(), held.begin(), held.end());
  }
  return databases;
}

struct Taken {
  std::vector<std::int64_t> ids;
  std::uint64_t read_bytes = 0;
};
void take(RowStore& store, const std::string& database, RowRange range, Taken& taken) {
  const auto reader = store.open(database);
  RangeRead read(*reader, "spread", range);
  read.tables();
  StoredRows rows;
  while (read.next(rows))
    for (const std::uint64_t offset : rows.offsets)
      if (const auto row = rows.first_row + static_cast<std::int64_t>(offset);
          row >= range.begin && row < range.end)
        taken.ids.push_back(row);
  taken.read_bytes += reader->read_bytes();
}

void expect_each_read_once(RowStore& store, const std::string& folder) {
  std::vector<std::int64_t> ids;
  const auto databases = write_spread(store, folder, ids);
  Taken whole;
  for (const std::string& database : databases) take(store, database, {0, kSpread}, whole);
  ASSERT_EQ(whole.ids, ids);
  for (const std::int64_t parts : {1, 2, 5, 8}) {
    Taken taken;
    for (const RowRange part : split_rows(kSpread, parts))
      for (const std::string& database : databases) take(store, database, part, taken);
    EXPECT_EQ(taken.ids, ids) << parts << " parts";
    // A look into a database reads its table record with the block behind that, and where its part
    // begins a block that the part before has read.
    const std::size_t twice = 2 * static_cast<std::size_t>(parts) * databases.size() * kBlockBytes;
    EXPECT_LE(taken.read_bytes, whole.read_bytes + twice) << parts << " parts";
  }
}

TEST(RangeRead, PartsOfAnyCutReadEachBlockOnceWhereBlocksDoNotOverlap) {
  MemoryDisk disk;
  expect_each_read_once(*make_memory_row_store(disk), "db");
}
TEST(RangeRead, NothingBehindARangeIsReadAheadFromTheDisk) {
  const TempFolder folder;
  expect_each_read_once(*make_rocks_row_store(), folder.path());
}

TEST(RangeRead, ADamagedBlockIsNamedWithItsFile) {
  MemoryDisk disk;
  const auto memory = make_memory_row_store(disk);
  write_database(*memory, "db");
  disk.flip_bit("db/rows", 9000);
  const auto reader = memory->open("db");
  RangeRead read(*reader, "a", {0, 1000});
  read.tables();
  std::vector<StoredRows> blocks;
  EXPECT_THAT([&] { read.read(blocks, 1 << 20); },
              testing::ThrowsMessage<DataLossError>(
                  AllOf(HasSubstr("db/rows"), HasSubstr("variable 'a', row "))));
}

TEST(RangeRead, AFileThatRotsIsNamed) {
  const TempFolder folder;
  const auto store = make_rocks_row_store();
  for (const FileInfo& file : write_database(*store, folder.path() + "/db")) {
    if (!file.name.ends_with(".sst")) continue;
    std::fstream rotten(folder.path() + "/" + file.name,
                        std::ios::in | std::ios::out | std::ios::binary);
    rotten.seekp(5000);
    rotten.write("\x5a\xa5", 2);
    rotten.close();
    const auto reader = store->open(folder.path() + "/db");
    RangeRead read(*reader, "a", {0, 1000});
    std::vector<StoredRows> blocks;
    EXPECT_THAT(
        [&] {
          read.tables();
          read.read(blocks, 1 << 20);
        },
        testing::ThrowsMessage<DataLossError>(HasSubstr(folder.path() + "/" + file.name)));
  }
}

}  // namespace
}  // namespace cairn::storage
