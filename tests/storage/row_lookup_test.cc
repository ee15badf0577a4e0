#include "storage/row_lookup.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>

#include "core/base/error.h"
#include "core/disk/memory_disk.h"
#include "tests/storage/fixture.h"

namespace cairn::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// The first element of each row that was found, by the row's number: some_rows() makes them equal.
void expect_own_values(const std::vector<StoredRows>& found,
                       const std::vector<std::int64_t>& expected) {
  std::vector<std::int64_t> rows;
  for (const StoredRows& block : found)
    for (std::size_t i = 0; i < block.offsets.size(); ++i) {
      rows.push_back(block.first_row + static_cast<std::int64_t>(block.offsets[i]));
      float first = 0;
      std::memcpy(&first, block.data.data() + i * block.row_bytes(), sizeof first);
      EXPECT_EQ(first, static_cast<float>(rows.back()));
    }
  EXPECT_EQ(rows, expected);
}

TEST(RowLookup, FindsTheRowsThatAreThereAndLeavesTheOthers) {
  const TempFolder folder;
  MemoryDisk disk;
  const auto in_memory = make_memory_row_store(disk), on_disk = make_rocks_row_store();
  for (RowStore* const store : {in_memory.get(), on_disk.get()}) {
    write_database(*store, folder.path() + "/db");
    const auto reader = store->open(folder.path() + "/db");
    std::vector<StoredRows> found;
    std::vector<std::int64_t> rows{0, 1, 3, 99, 101, 103, 500, 599, 999};
    RowLookup(*reader, "b").take(rows, found);  // which has every third row of each hundred
    expect_own_values(found, {0, 3, 99, 103, 500, 599, 999});
    EXPECT_THAT(rows, ElementsAre(1, 101));
    found.clear();
    rows = {0, 150, 151, 999};
    RowLookup(*reader, "a").take(rows, found);
    expect_own_values(found, {0, 150, 151, 999});
    EXPECT_THAT(rows, IsEmpty());
    rows = {0, 7};
    RowLookup(*reader, "c").take(rows, found);
    EXPECT_THAT(rows, ElementsAre(0, 7));
  }
}

// RocksDB's index of blocks alone would have every other lookup read the next block first.
TEST(RowLookup, ReadsTheBlocksThatHaveTheRowsAndNoOthers) {
  const TempFolder folder;
  const auto store = make_rocks_row_store();
  const auto writer = store->create(folder.path() + "/db");
  constexpr std::int64_t kBlocks = 100, kBlockRows = 255;
  std::uint64_t block_bytes = 0;
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    StoredRows rows = some_rows(block * kBlockRows, {});
    rows.dim = 64;
    for (std::uint64_t row = 0; row < kBlockRows; ++row) rows.offsets.push_back(row);
    rows.data.resize(rows.offsets.size() * rows.row_bytes());
    const std::string key = encode(RecordKey{"a", RecordKind::kRows, rows.first_row});
    const std::string value = encode(key, rows);
    block_bytes = value.size();
    writer->put(key, value);
  }
  writer->finish();
  const auto reader = store->open(folder.path() + "/db");
  std::vector<StoredRows> found;
  std::vector<std::int64_t> rows;
  for (std::int64_t block = 0; block < kBlocks; block += 10)
    rows.push_back((block + 1) * kBlockRows - 1);
  const std::size_t looked_for = rows.size();
  const std::uint64_t before = reader->read_bytes();
  RowLookup(*reader, "a").take(rows, found);
  EXPECT_THAT(rows, IsEmpty());
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found.front().offsets.size(), looked_for);
  EXPECT_LE(reader->read_bytes() - before, (kBlocks / 10 + 2) * block_bytes);
}

// In the order of keys "b" lies behind "a": a row of "b" before its first block is not one of "a".
TEST(RowLookup, DoesNotTakeABlockOfAnotherVariable) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  const auto writer = store->create("db");
  for (const char* const name : {"a", "b"}) {
    const std::string key = encode(RecordKey{name, RecordKind::kRows, 10});
    writer->put(key, encode(key, some_rows(10, {0, 1})));
  }
  writer->finish();
  const auto reader = store->open("db");
  std::vector<StoredRows> found;
  std::vector<std::int64_t> rows{4, 9, 11, 12, 4000};
  RowLookup(*reader, "b").take(rows, found);
  expect_own_values(found, {11});
  EXPECT_THAT(rows, ElementsAre(4, 9, 12, 4000));
}

TEST(RowLookup, NamesTheFileOfADamagedBlock) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  const auto writer = store->create("db");
  const std::string key = encode(RecordKey{"a", RecordKind::kRows, 0});
  std::string value = encode(key, some_rows(0, {0, 1}));
  value[value.size() / 2] ^= 1;
  writer->put(key, value);
  writer->finish();
  const auto reader = store->open("db");
  std::vector<StoredRows> found;
  std::vector<std::int64_t> rows{1};
  EXPECT_THAT([&] { RowLookup(*reader, "a").take(rows, found); },
              ThrowsMessage<DataLossError>(HasSubstr("db/rows")));
}

}  // namespace
}  // namespace cairn::storage
