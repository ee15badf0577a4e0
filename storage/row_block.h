// What a checkpoint's database holds: blocks of rows with their slots, and one record a table. Pure
// encoding.
//
//   Key    length of the name (2 bytes), name, kind (1 byte), row (8 bytes), numbers big-endian:
//          the keys of a variable lie together, its record first, then its rows in order. A read of
//          rows is therefore a read of a range; the blocks of a hashed variable are in the order of
//          their first rows, but each may reach far into the next ones.
//   Value  little-endian; ends in a CRC-32C over key and value. docs/checkpoint-format.md has the
//          byte table.
// Decoding is total: any bytes give a value or DataLoss that names the key. Thread: any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/update_rule.h"
#include "core/rows/layout.h"
#include "core/tensor/tensor.h"

namespace cairn::storage {

// of rows in a block, unless a single row has more
inline constexpr std::size_t kBlockBytes = 64 << 10;

enum class RecordKind : std::uint8_t { kTable = 1, kRows = 2 };

struct RecordKey {
  std::string variable;
  RecordKind kind = RecordKind::kRows;
  std::int64_t row = 0;  // of the whole variable: a block's first, or a part's begin
  bool operator==(const RecordKey&) const = default;
};
std::string encode(const RecordKey& key);
RecordKey decode_key(std::string_view bytes);  // DataLoss
// Something readable of any key, for messages.
std::string describe_key(std::string_view bytes);

// Rows of one variable, ascending, each with its slots.
struct StoredRows {
  DType dtype = DType::kFloat32;
  RuleKind rule = RuleKind::kAssign;  // whose slots these are
  std::uint32_t slots = 0;
  std::int64_t dim = 0;
  std::int64_t first_row = 0;
  std::vector<std::uint64_t> offsets;  // row numbers less first_row, ascending from 0
  // [rows][dim parameters, then slots of slot_width(rule, dim) each]
  std::vector<std::byte> data;

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()); }
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(dim + slots * slot_width(rule, dim)) * dtype_bytes(dtype);
  }
  bool contiguous() const { return !offsets.empty() && offsets.back() + 1 == offsets.size(); }
  bool operator==(const StoredRows&) const = default;
};
// A contiguous range costs no bytes for its row numbers, a list one or two a row, or up to nine of
// a hashed variable.
std::string encode(std::string_view key, const StoredRows& rows);
StoredRows decode_rows(std::string_view key, std::string_view value);  // DataLoss

// What a table is, beside its rows: written even where no row was ever touched.
struct TableRecord {
  std::string variable;
  DType dtype = DType::kFloat32;
  Shape shape;  // of the whole variable
  UpdateRule rule;
  std::vector<std::string> slots;
  RowRange rows;             // the part
  std::int64_t updates = 0;  // t
  bool hashed = false;
  bool operator==(const TableRecord&) const = default;
};
std::string encode(std::string_view key, const TableRecord& record);
TableRecord decode_table(std::string_view key, std::string_view value);  // DataLoss

}  // namespace cairn::storage
