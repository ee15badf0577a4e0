// How a checkpoint holds rows: as they are, or in fewer bytes. Every block of rows says how it is
// encoded (docs/checkpoint-format.md), so that reading asks nobody.
//
//   bfloat16  8 bits of significand: a relative error of at most 2^-8.
//   int8      one float32 scale per row, the greatest magnitude / 127: an error of at most half of
//             that. A block with a value that is no finite number stays exact, as does one whose
//             rows would not become smaller.
//   dropped   of slots: they begin anew when the rows are restored, with the count of updates, and
//             the plan of the restore says so.
//   Only float32 is encoded; rows and slots of other dtypes stay as they are.
//   Source  bfloat16: core/tensor/bfloat16.h. int8 with a scale per row: Guan et al.,
//           "Post-Training 4-bit Quantization on Embedding Tables", 2019, whose baseline it is.
//   Thread  any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::storage {

struct StoredRows;

// The numbers are those of the format; never renumber.
enum class RowForm : std::uint8_t { kExact = 0, kBfloat16 = 1, kInt8 = 2 };
enum class SlotForm : std::uint8_t { kExact = 0, kBfloat16 = 1, kDropped = 2 };
enum class Compression : std::uint8_t { kNone = 0, kZstd = 1 };

// "exact", "bf16", "int8", "dropped"; "none", "zstd".
const char* form_name(RowForm form);
const char* form_name(SlotForm form);
const char* compression_name(Compression compression);
//   Errors  InvalidArgument: none of these; names `where` and all that there are.
RowForm parse_row_form(const std::string& name, const std::string& where);
SlotForm parse_slot_form(const std::string& name, const std::string& where);
Compression parse_compression(const std::string& name, const std::string& where);

// The program's wish.
struct RowEncoding {
  RowForm rows = RowForm::kExact;
  SlotForm slots = SlotForm::kExact;
  // This is said of all variables; it loses nothing.
  Compression compression = Compression::kNone;
  // Patterns of names, "*" for any characters: `rows` and `slots` are said of these variables, and
  // of hashed ones always. Others stay exact.
  std::vector<std::string> variables = {};
  bool exact() const { return rows == RowForm::kExact && slots == SlotForm::kExact; }
  bool operator==(const RowEncoding&) const = default;
};

// How one block is written.
struct BlockForm {
  RowForm rows = RowForm::kExact;
  SlotForm slots = SlotForm::kExact;
  Compression compression = Compression::kNone;
  bool operator==(const BlockForm&) const = default;
};

// The same once the variables are known, by their names.
struct ChosenEncoding {
  RowForm rows = RowForm::kExact;
  SlotForm slots = SlotForm::kExact;
  Compression compression = Compression::kNone;
  std::set<std::string> variables = {};
  BlockForm form_of(const std::string& variable) const;
  bool operator==(const ChosenEncoding&) const = default;
};

// ---- for row_block.cc ----
// The form in which these rows are in fact written: exact where the dtype, a value or the size asks
// for it. Its slots are not kDropped: drop_slots() comes first.
BlockForm form_for(const StoredRows& rows, BlockForm wanted);
// The bytes of rows and slots in this form, uncompressed.
std::string encode_values(const StoredRows& rows, BlockForm form);
std::size_t encoded_bytes(const StoredRows& rows, BlockForm form);
// Fills `rows.data` from exactly encoded_bytes() bytes.
void decode_values(std::string_view values, BlockForm form, StoredRows& rows);
// Without slots, as if no optimizer had claimed the variable.
void drop_slots(StoredRows& rows);

// zstd at its fastest level. Empty: it would not become smaller.
std::string compressed(std::string_view bytes);
// False: these are not `size` bytes that were compressed.
bool decompress(std::string_view from, std::size_t size, std::string& to);

// The most bytes that are compressed as one; larger rows stay as they are, so that a reader knows
// a bound before it takes memory.
inline constexpr std::size_t kCompressedBytesMax = std::size_t{1} << 20;

}  // namespace cairn::storage
