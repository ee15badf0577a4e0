#include "storage/row_encoding.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "storage/row_block.h"
#include "tests/storage/fixture.h"

namespace cairn::storage {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kDim = 16;
constexpr std::size_t kRowFloats = 2 * kDim;  // with one slot

// 100 rows of every second number, of normal values whose magnitudes differ from row to row.
StoredRows random_rows() {
  StoredRows rows{.rule = RuleKind::kAdagrad, .slots = 1, .dim = kDim, .first_row = 7};
  for (std::uint64_t i = 0; i < 100; ++i) rows.offsets.push_back(2 * i);
  rows.data.resize(rows.offsets.size() * rows.row_bytes());
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  auto* values = reinterpret_cast<float*>(rows.data.data());
  for (std::size_t i = 0; i < 100 * kRowFloats; ++i)
    values[i] = normal(random) * std::exp2(static_cast<float>(i / kRowFloats % 20) - 10);
  return rows;
}

const std::string& key() {
  static const std::string key = encode(RecordKey{"t", RecordKind::kRows, 7});
  return key;
}

const float* row_of(const StoredRows& rows, std::size_t i) {
  return reinterpret_cast<const float*>(rows.data.data()) + i * kRowFloats;
}

float magnitude(const float* row) {
  float greatest = 0;
  for (std::int64_t j = 0; j < kDim; ++j) greatest = std::max(greatest, std::fabs(row[j]));
  return greatest;
}

TEST(RowEncoding, Bfloat16RowsKeepEightBitsAndExactSlotsAllOfThem) {
  const StoredRows rows = random_rows();
  const std::string value = encode(key(), rows, {.rows = RowForm::kBfloat16});
  EXPECT_LT(value.size(), encode(key(), rows).size() * 4 / 5);
  const StoredRows back = decode_rows(key(), value);
  ASSERT_EQ(back.offsets, rows.offsets);
  for (std::size_t i = 0; i < 100; ++i)
    for (std::int64_t j = 0; j < 2 * kDim; ++j) {
      const float was = row_of(rows, i)[j], is = row_of(back, i)[j];
      if (j < kDim)
        EXPECT_LE(std::fabs(is - was), std::fabs(was) / 256);
      else
        EXPECT_EQ(is, was);
    }
}

TEST(RowEncoding, Int8RowsAreOffByHalfAStepOfTheirOwnScaleAtMost) {
  const StoredRows rows = random_rows();
  const std::string value =
      encode(key(), rows, {.rows = RowForm::kInt8, .slots = SlotForm::kBfloat16});
  EXPECT_LT(value.size(), encode(key(), rows).size() / 2);
  const StoredRows back = decode_rows(key(), value);
  for (std::size_t i = 0; i < 100; ++i) {
    const float step = magnitude(row_of(rows, i)) / 127;
    for (std::int64_t j = 0; j < kDim; ++j)
      EXPECT_LE(std::fabs(row_of(back, i)[j] - row_of(rows, i)[j]), 0.501f * step);
  }
}

TEST(RowEncoding, ARowOfZerosAndOneOfTheLeastNumbersComeBackFinite) {
  StoredRows rows = random_rows();
  auto* values = reinterpret_cast<float*>(rows.data.data());
  for (std::size_t i = 0; i < kRowFloats; ++i) {
    values[i] = 0;
    values[kRowFloats + i] = std::numeric_limits<float>::denorm_min();
  }
  const StoredRows back = decode_rows(key(), encode(key(), rows, {.rows = RowForm::kInt8}));
  for (std::size_t i = 0; i < static_cast<std::size_t>(kDim); ++i) {
    EXPECT_EQ(row_of(back, 0)[i], 0.0f);
    EXPECT_LE(std::fabs(row_of(back, 1)[i]), std::numeric_limits<float>::min());
  }
}

// A scale cannot hold them, and a NaN that became a number would be wrong without a word.
TEST(RowEncoding, RowsThatAreNoFiniteNumbersStayAsTheyAreAsInt8) {
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    StoredRows rows = random_rows();
    reinterpret_cast<float*>(rows.data.data())[40] = odd;
    EXPECT_EQ(encode(key(), rows, {.rows = RowForm::kInt8}), encode(key(), rows));
  }
}

TEST(RowEncoding, OtherDtypesAndRowsThatWouldNotShrinkStayAsTheyAre) {
  StoredRows rows = random_rows();
  rows.dtype = DType::kInt32;
  EXPECT_EQ(encode(key(), rows, {.rows = RowForm::kBfloat16, .slots = SlotForm::kBfloat16}),
            encode(key(), rows));
  StoredRows thin{.dim = 1, .first_row = 7, .offsets = {0, 1}};
  thin.data.resize(8);
  EXPECT_EQ(encode(key(), thin, {.rows = RowForm::kInt8}), encode(key(), thin));
}

TEST(RowEncoding, DroppedSlotsAreNoPartOfRowsAndTable) {
  const StoredRows rows = random_rows();
  StoredRows bare = rows;
  drop_slots(bare);
  EXPECT_EQ(decode_rows(key(), encode(key(), rows, {.slots = SlotForm::kDropped})), bare);
  const std::string at = encode(RecordKey{"t", RecordKind::kTable, 0});
  const TableRecord record =
      decode_table(at, encode(at, some_table("t", {0, 9}), {.slots = SlotForm::kDropped}));
  EXPECT_TRUE(record.slots.empty());
  EXPECT_EQ(record.rule.kind, RuleKind::kAssign);
  EXPECT_EQ(record.updates, 0);
}

TEST(RowEncoding, ZstdLosesNothingAndIsLeftOutWhereItGainsNothing) {
  StoredRows rows = random_rows();
  const std::string noise = encode(key(), rows, {.compression = Compression::kZstd});
  EXPECT_EQ(decode_rows(key(), noise), rows);
  std::fill(rows.data.begin(), rows.data.end(), std::byte{7});
  const std::string packed = encode(key(), rows, {.compression = Compression::kZstd});
  EXPECT_LT(packed.size(), encode(key(), rows).size() / 10);
  EXPECT_EQ(decode_rows(key(), packed), rows);
  // One byte cannot become smaller.
  StoredRows one{.dtype = DType::kUint8, .dim = 1, .first_row = 7, .offsets = {0}};
  one.data.resize(1);
  EXPECT_EQ(encode(key(), one, {.compression = Compression::kZstd}), encode(key(), one));
}

TEST(RowEncoding, EveryFlippedBitAndEveryCutOfAnEncodedBlockIsFound) {
  const std::string value = encode(
      key(), random_rows(),
      {.rows = RowForm::kInt8, .slots = SlotForm::kBfloat16, .compression = Compression::kZstd});
  for (std::size_t bit = 0; bit < 8 * value.size(); bit += 3) {
    std::string changed = value;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(decode_rows(key(), changed), DataLossError) << "bit " << bit;
  }
  for (std::size_t size = 0; size < value.size(); size += 7)
    EXPECT_THROW(decode_rows(key(), value.substr(0, size)), DataLossError) << size << " bytes";
}

// Bytes that somebody else made, with the right checksum: whatever they claim, they are refused
// before memory is taken for it.
TEST(RowEncoding, ForgedSizesAndFormsAreRefused) {
  const StoredRows rows = random_rows();
  const std::string value = encode(key(), rows, {.rows = RowForm::kBfloat16});
  const auto forged = [&](std::size_t at, char byte) {
    std::string changed = value;
    changed[at] = byte;
    changed.resize(changed.size() - sizeof(std::uint32_t));
    const std::uint32_t sum = crc32c(changed, crc32c(key()));
    changed.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    return changed;
  };
  constexpr std::size_t kDimAt = 8, kRowFormAt = 20, kSlotFormAt = 21, kCompressionAt = 22;
  for (const std::size_t at : {kDimAt + 3, kDimAt + 4, kRowFormAt, kSlotFormAt, kCompressionAt})
    EXPECT_THROW(decode_rows(key(), forged(at, 1 + (at == kRowFormAt) * 6)), DataLossError) << at;
}

TEST(RowEncoding, NamesAreReadBackAndOthersAreRefusedWithThoseThatThereAre) {
  for (const RowForm form : {RowForm::kExact, RowForm::kBfloat16, RowForm::kInt8})
    EXPECT_EQ(parse_row_form(form_name(form), "here"), form);
  for (const SlotForm form : {SlotForm::kExact, SlotForm::kBfloat16, SlotForm::kDropped})
    EXPECT_EQ(parse_slot_form(form_name(form), "here"), form);
  try {
    parse_compression("gzip", "checkpoint.compression");
    FAIL() << "it was taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("checkpoint.compression is \"gzip\""));
    EXPECT_THAT(error.what(), HasSubstr("\"none\", \"zstd\""));
  }
}

}  // namespace
}  // namespace cairn::storage
