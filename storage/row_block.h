// The records of a checkpoint's database: blocks of rows with their slots, and one record per
// table. Encoding and decoding only; nothing here touches a disk.
//
//   Key    length of the name (2 bytes), name, kind (1 byte), row (8 bytes), numbers big-endian:
//   the keys of a variable lie together, its table records first, then its rows in order. A read of
//   rows is therefore a read of a range. In checkpoints of earlier releases a block of a hashed
//   variable may reach far into the next ones, which its table record then says.
//   Value  little-endian; ends in a CRC-32C over key and value, so that a block that was moved to
//          another key is noticed too. docs/checkpoint-format.md has the byte table.
//
// Decoding is total: any bytes give a value or a DataLoss that names the key.
//   Thread  any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/update_rule.h"
#include "core/rows/layout.h"
#include "core/tensor/tensor.h"
#include "storage/row_encoding.h"

namespace cairn::storage {

// Bytes of rows in a block, unless a single row has more.
inline constexpr std::size_t kBlockBytes = 64 << 10;

// The numbers are those of the format; never renumber. Tables sort before rows.
enum class RecordKind : std::uint8_t { kTable = 1, kRows = 2, kGone = 3, kSeen = 4 };

struct RecordKey {
  std::string variable;
  RecordKind kind = RecordKind::kRows;
  std::int64_t row = 0;  // of the whole variable: a block's first, or a part's begin
  bool operator==(const RecordKey&) const = default;
};
std::string encode(const RecordKey& key);
// Errors  DataLoss: the bytes are not a key.
RecordKey decode_key(std::string_view bytes);
// A readable form of any key, for messages.
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
// The value of a block. Consecutive rows cost no bytes for their numbers; a list costs one or two
// bytes per row, or up to nine per row of a hashed variable.
std::string encode(std::string_view key, const StoredRows& rows);
// The same, encoded; without slots if the form drops them.
std::string encode(std::string_view key, const StoredRows& rows, BlockForm form);
// Errors  DataLoss: the value is damaged, or does not belong to `key`.
StoredRows decode_rows(std::string_view key, std::string_view value);
// The same, into memory that an earlier block has left; after an error `rows` is good for nothing
// but the next call.
void decode_rows(std::string_view key, std::string_view value, StoredRows& rows);

// Rows of one variable that have gone since the checkpoint that this one is a delta to: what
// earlier databases hold of them does not count (SupersededRows). The key's row is the first one.
struct GoneRows {
  std::int64_t first_row = 0;
  std::vector<std::uint64_t> offsets;  // row numbers less first_row, ascending from 0
  bool operator==(const GoneRows&) const = default;
};
inline constexpr std::size_t kGoneRowsMax = 1 << 16;  // in one record
std::string encode(std::string_view key, const GoneRows& rows);
// Errors  DataLoss, as decode_rows().
GoneRows decode_gone(std::string_view key, std::string_view value);

// A part's counts of rows that it has seen and not admitted yet (core/rows/row_turnover.h). The
// key's row is the part's first. Of a delta's databases that have it of one part the last one's
// counts.
struct SeenRows {
  RowRange rows;              // the part
  std::uint64_t dropped = 0;  // gradients of rows that were not admitted
  std::string sketch;         // FrequencySketch::saved(); empty: there is none
  bool operator==(const SeenRows&) const = default;
};
std::string encode(std::string_view key, const SeenRows& seen);
inline std::string encode(std::string_view key, const SeenRows& seen, BlockForm) {
  return encode(key, seen);
}
// Errors  DataLoss, as decode_rows().
SeenRows decode_seen(std::string_view key, std::string_view value);

// The description of a table apart from its rows: written even where no row was ever touched, so
// that a restore knows the variable and its count of updates.
struct TableRecord {
  std::string variable;
  DType dtype = DType::kFloat32;
  Shape shape;  // of the whole variable
  UpdateRule rule;
  std::vector<std::string> slots;
  RowRange rows;             // the part
  std::int64_t updates = 0;  // RuleInputs::t of the last one
  // A block of this part may hold rows that lie beyond the next block's first one: to find the rows
  // of a range, every block before its end has to be read. So it is where a hashed table's rows
  // were saved in the order in which they came.
  bool blocks_overlap = false;
  // It is of a delta that holds all rows that this part has, so that what earlier databases hold
  // of the part does not count.
  bool whole = false;
  bool operator==(const TableRecord&) const = default;
};
std::string encode(std::string_view key, const TableRecord& record);
// The same; without slots and updates if the form drops slots.
std::string encode(std::string_view key, TableRecord record, BlockForm form);
// Errors  DataLoss, as decode_rows().
TableRecord decode_table(std::string_view key, std::string_view value);

// Decodes a record of any kind, to see that it is sound. Returns its rows; `scratch` is used for
// them.
//   Errors  DataLoss, as decode_rows().
std::int64_t verify_record(std::string_view key, std::string_view value, StoredRows& scratch);

}  // namespace cairn::storage
