// Blocks are found in the files of a database, and rows in the blocks, without a database open.
#include "storage/single_rows/block_places.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <random>

#include "core/base/error.h"
#include "storage/single_rows/row_layout.h"
#include "tests/storage/fixture.h"

namespace cairn::storage {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string bytes_of(const DatabaseBlocks& database, const BlockPlace& place) {
  std::ifstream file(database.files.at(place.file), std::ios::binary);
  std::string bytes(place.bytes, '\0');
  file.seekg(static_cast<std::streamoff>(place.begin));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.good());
  return bytes;
}
std::string key_of(const std::string& variable, const BlockPlace& place) {
  return encode(RecordKey{variable, RecordKind::kRows, place.first_row});
}

TEST(BlockPlaces, EveryBlockIsWhereItsPlaceSays) {
  const TempFolder folder;
  write_database(*make_rocks_row_store(), folder.path() + "/db");
  const DatabaseBlocks database = blocks_of_database(folder.path() + "/db");
  ASSERT_EQ(database.blocks.size(), 2u);
  for (const auto& [variable, places] : database.blocks) {
    ASSERT_EQ(places.size(), 10u);
    std::int64_t first = 0;
    for (const BlockPlace& place : places) {
      EXPECT_EQ(place.first_row, first);
      const std::string bytes = bytes_of(database, place), key = key_of(variable, place);
      const RecordBytes found = find_record(bytes, key);
      const StoredRows rows =
          decode_rows(key, std::string_view(bytes).substr(found.at, found.bytes));
      std::vector<std::uint64_t> offsets;
      for (std::uint64_t i = 0; i < 100; i += variable == "a" ? 1 : 3) offsets.push_back(i);
      EXPECT_EQ(rows, some_rows(first, offsets));
      first += 100;
    }
  }
}

TEST(BlockPlaces, WhatIsNoDatabaseHereIsRefused) {
  const TempFolder folder;
  EXPECT_THAT([] { blocks_of_database("s3://bucket/db"); },
              ThrowsMessage<UnimplementedError>(HasSubstr("cairn ckpt copy")));
  EXPECT_THROW(blocks_of_database(folder.path() + "/none"), DataLossError);
}

// Whatever the bytes are, the search ends, and gives what lies in them or an error.
TEST(BlockPlaces, DamagedBytesGiveAnErrorOrABlockThatIsRefused) {
  const TempFolder folder;
  write_database(*make_rocks_row_store(), folder.path() + "/db");
  const DatabaseBlocks database = blocks_of_database(folder.path() + "/db");
  const BlockPlace& place = database.blocks.at("b").at(7);
  const std::string sound = bytes_of(database, place), key = key_of("b", place);
  const StoredRows rows = [&] {
    const RecordBytes at = find_record(sound, key);
    return decode_rows(key, std::string_view(sound).substr(at.at, at.bytes));
  }();
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = sound;
    if (i % 3 == 0) bytes.resize(random() % bytes.size());
    for (int change = 0; change < 3 && !bytes.empty(); ++change)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    try {
      const RecordBytes at = find_record(bytes, key);
      ASSERT_LE(at.at + at.bytes, bytes.size());
      EXPECT_EQ(decode_rows(key, std::string_view(bytes).substr(at.at, at.bytes)), rows);
    } catch (const DataLossError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

// ---- rows in a block ----

struct RowLayoutForms : testing::TestWithParam<BlockForm> {};
INSTANTIATE_TEST_SUITE_P(Forms, RowLayoutForms,
                         testing::Values(BlockForm{},
                                         BlockForm{RowForm::kBfloat16, SlotForm::kExact},
                                         BlockForm{RowForm::kBfloat16, SlotForm::kBfloat16},
                                         BlockForm{RowForm::kInt8, SlotForm::kBfloat16},
                                         BlockForm{RowForm::kInt8, SlotForm::kDropped}));

TEST_P(RowLayoutForms, EachRowIsDecodedAsTheWholeBlockIs) {
  for (const std::vector<std::uint64_t>& offsets :
       {std::vector<std::uint64_t>{0, 1, 2, 3}, {0, 5, 300, 100'000}, {0}}) {
    StoredRows rows = some_rows(40, offsets);
    rows.dim = 16;  // so that int8 is smaller
    rows.data.resize(rows.offsets.size() * rows.row_bytes());
    std::mt19937 random(2);
    for (std::size_t i = 0; i < rows.data.size() / sizeof(float); ++i)
      reinterpret_cast<float*>(rows.data.data())[i] = static_cast<float>(random() % 999) / 100;
    const std::string key = encode(RecordKey{"v", RecordKind::kRows, 40});
    const std::string value = encode(key, rows, GetParam());
    const StoredRows decoded = decode_rows(key, value);
    const RowLayout layout = row_layout(value);
    ASSERT_EQ(layout.count, offsets.size());
    ASSERT_EQ(layout.contiguous, rows.contiguous());
    EXPECT_EQ(layout.form.rows, GetParam().rows);
    if (!layout.contiguous) {
      std::vector<std::uint64_t> list;
      read_row_list(layout,
                    std::string_view(value).substr(layout.list_at, layout.rows_at - layout.list_at),
                    list);
      EXPECT_EQ(list, offsets);
    }
    EXPECT_EQ(layout.rows_at + layout.count * layout.stride + sizeof(std::uint32_t), value.size());
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      std::vector<std::byte> row(16 * sizeof(float));
      decode_parameters(
          layout,
          reinterpret_cast<const std::byte*>(value.data()) + layout.rows_at + i * layout.stride,
          row.data());
      EXPECT_EQ(std::memcmp(row.data(), decoded.data.data() + i * decoded.row_bytes(), row.size()),
                0);
    }
  }
}

TEST(RowLayout, BytesThatAreNoBlockAreAnErrorAndNotReadBeyond) {
  StoredRows rows = some_rows(40, {0, 5, 300});
  const std::string key = encode(RecordKey{"v", RecordKind::kRows, 40});
  const std::string value = encode(key, rows);
  for (std::size_t size = 0; size < row_layout(value).rows_at; ++size)
    EXPECT_THROW(row_layout(std::string_view(value).substr(0, size)), DataLossError);
  RowLayout layout = row_layout(value);
  layout.count = 1000;
  std::vector<std::uint64_t> list;
  EXPECT_THROW(read_row_list(layout, std::string_view(value).substr(layout.list_at, 4), list),
               DataLossError);
}

}  // namespace
}  // namespace cairn::storage
