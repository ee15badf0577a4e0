#include "storage/row_block.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "tests/storage/fixture.h"

namespace cairn::storage {
namespace {

TEST(RecordKey, OrdersByVariableThenRecordThenRow) {
  const std::vector<RecordKey> ordered = {
      {"a", RecordKind::kTable, 0},  {"a", RecordKind::kTable, 700},
      {"a", RecordKind::kRows, 0},   {"a", RecordKind::kRows, 255},
      {"a", RecordKind::kRows, 256}, {"a", RecordKind::kRows, std::int64_t{1} << 40},
      {"b", RecordKind::kTable, 0},  {"aa", RecordKind::kTable, 0}};
  std::vector<std::string> bytes;
  for (const RecordKey& key : ordered) {
    bytes.push_back(encode(key));
    EXPECT_EQ(decode_key(bytes.back()), key);
  }
  EXPECT_TRUE(std::is_sorted(bytes.begin(), bytes.end()));
}

TEST(RowBlock, RangesAndListsComeBackBitEqual) {
  const std::string key = encode(RecordKey{"table", RecordKind::kRows, 40});
  for (const auto& offsets : std::vector<std::vector<std::uint64_t>>{
           {0}, {0, 1, 2, 3}, {0, 5, 6, 300, 70000}, {0, std::uint64_t{1} << 40, INT64_MAX - 40}}) {
    const StoredRows rows = some_rows(40, offsets);
    EXPECT_EQ(decode_rows(key, encode(key, rows)), rows);
  }
  const StoredRows range = some_rows(40, {0, 1, 2, 3});
  // the row numbers of a range are free
  EXPECT_LE(encode(key, range).size(), range.data.size() + 32);
}

TEST(RowBlock, ATableRecordComesBackEqual) {
  const TableRecord record = some_table("table", {10, 20});
  const std::string key = encode(RecordKey{"table", RecordKind::kTable, 10});
  EXPECT_EQ(decode_table(key, encode(key, record)), record);
}

TEST(RowBlock, ATableRecordSaysThatItIsHashed) {
  TableRecord record = some_table("table", {10, 20});
  record.blocks_overlap = true;
  const std::string key = encode(RecordKey{"table", RecordKind::kTable, 10});
  EXPECT_EQ(decode_table(key, encode(key, record)), record);
}

TEST(RowBlock, ARowNumberBeyondAllIsRefused) {
  const std::string key = encode(RecordKey{"table", RecordKind::kRows, 40});
  StoredRows rows = some_rows(40, {0, 1});
  rows.offsets[1] = INT64_MAX - 39;
  EXPECT_THROW(decode_rows(key, encode(key, rows)), DataLossError);
}

TEST(RowBlock, EveryFlippedBitAndEveryCutIsFound) {
  const std::string key = encode(RecordKey{"table", RecordKind::kRows, 40});
  const std::string sound = encode(key, some_rows(40, {0, 2}));
  for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    std::string bad = sound;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    EXPECT_THROW(decode_rows(key, bad), DataLossError) << "bit " << bit;
  }
  for (std::size_t size = 0; size < sound.size(); ++size)
    EXPECT_THROW(decode_rows(key, sound.substr(0, size)), DataLossError);
}

TEST(RowBlock, UnderAnotherKeyItIsRefused) {
  const std::string key = encode(RecordKey{"table", RecordKind::kRows, 40}),
                    other = encode(RecordKey{"table", RecordKind::kRows, 41});
  EXPECT_THROW(decode_rows(other, encode(key, some_rows(40, {0, 1}))), DataLossError);
}

// A peer or a disk may hand over bytes whose checksum is right: sizes are checked before anything
// is allocated.
TEST(RowBlock, ImpossibleSizesWithARightChecksumAreRefused) {
  const std::string key = encode(RecordKey{"table", RecordKind::kRows, 40});
  const std::string sound = encode(key, some_rows(40, {0, 2}));
  for (std::size_t at = 0; at < 24; ++at) {
    std::string bad = sound.substr(0, sound.size() - 4);
    bad[at] = static_cast<char>(0xff);
    const std::uint32_t checksum = crc32c(bad, crc32c(key));
    bad.append(reinterpret_cast<const char*>(&checksum), 4);
    try {
      EXPECT_LE(decode_rows(key, bad).data.size(), sound.size()) << "byte " << at;
    } catch (const DataLossError&) {
    }
  }
}

}  // namespace
}  // namespace cairn::storage
