#include "storage/row_encoding.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/bfloat16.h"
#include "storage/row_block.h"

namespace cairn::storage {
namespace {

constexpr float kInt8Max = 127;
// The fastest of the usual levels. The fields of a row interleave floats, which no level shrinks
// much further.
constexpr int kZstdLevel = 1;

constexpr std::array<std::pair<const char*, RowForm>, 3> kRowForms{
    {{"exact", RowForm::kExact}, {"bf16", RowForm::kBfloat16}, {"int8", RowForm::kInt8}}};
constexpr std::array<std::pair<const char*, SlotForm>, 3> kSlotForms{
    {{"exact", SlotForm::kExact}, {"bf16", SlotForm::kBfloat16}, {"dropped", SlotForm::kDropped}}};
constexpr std::array<std::pair<const char*, Compression>, 2> kCompressions{
    {{"none", Compression::kNone}, {"zstd", Compression::kZstd}}};

template <typename Table, typename Form>
const char* name_in(const Table& table, Form form) {
  for (const auto& [name, value] : table)
    if (value == form) return name;
  return "unknown";
}

template <typename Table>
auto parse_in(const Table& table, const std::string& text, const std::string& where) {
  std::string known;
  for (const auto& [name, value] : table) {
    if (text == name) return value;
    known += str(known.empty() ? "" : ", ", '"', name, '"');
  }
  throw InvalidArgumentError(str(where, " is \"", text, "\": one of ", known, " is wanted"));
}

std::size_t bytes_of(RowForm form, std::size_t n) {
  switch (form) {
    case RowForm::kExact: return n * sizeof(float);
    case RowForm::kBfloat16: return n * 2;
    case RowForm::kInt8: return sizeof(float) + n;
  }
  return 0;
}

std::size_t slot_elements(const StoredRows& rows) {
  return static_cast<std::size_t>(rows.slots * slot_width(rows.rule, rows.dim));
}

// Elements of a row apart from its slots, and those of its slots.
struct RowElements {
  explicit RowElements(const StoredRows& rows)
      : parameters(static_cast<std::size_t>(rows.dim)), slots(slot_elements(rows)) {}
  std::size_t parameters, slots;
  std::size_t bytes(BlockForm form) const {
    return bytes_of(form.rows, parameters) +
           slots * (form.slots == SlotForm::kBfloat16 ? 2 : sizeof(float));
  }
};

// std::lround() of all values of a table takes longer than writing them.
void narrow_to_int8(const float* from, std::size_t n, std::byte* to) {
  float greatest = 0;
  for (std::size_t i = 0; i < n; ++i) greatest = std::max(greatest, std::fabs(from[i]));
  const float scale = greatest / kInt8Max;
  // A scale so small that its inverse overflows: all of the row is zero to 8 bits.
  const float inverse = scale > 0 && std::isfinite(1 / scale) ? 1 / scale : 0;
  std::memcpy(to, &scale, sizeof scale);
  to += sizeof scale;
  for (std::size_t i = 0; i < n; ++i) {
    const float steps = std::clamp(from[i] * inverse, -kInt8Max, kInt8Max);
    to[i] = static_cast<std::byte>(static_cast<std::int8_t>(steps + (steps < 0 ? -0.5f : 0.5f)));
  }
}

void widen_from_int8(const std::byte* from, std::size_t n, float* to) {
  float scale;
  std::memcpy(&scale, from, sizeof scale);
  from += sizeof scale;
  for (std::size_t i = 0; i < n; ++i)
    to[i] = scale * static_cast<float>(static_cast<std::int8_t>(from[i]));
}

bool all_finite(const StoredRows& rows) {
  const auto* values = reinterpret_cast<const float*>(rows.data.data());
  // A product with 0 is 0, or no number at all where a value is not finite: no branch in the loop.
  float sum = 0;
  for (std::size_t i = 0; i < rows.data.size() / sizeof(float); ++i) sum += values[i] * 0;
  return sum == 0;
}

}  // namespace

const char* form_name(RowForm form) { return name_in(kRowForms, form); }
const char* form_name(SlotForm form) { return name_in(kSlotForms, form); }
const char* compression_name(Compression compression) {
  return name_in(kCompressions, compression);
}
RowForm parse_row_form(const std::string& name, const std::string& where) {
  return parse_in(kRowForms, name, where);
}
SlotForm parse_slot_form(const std::string& name, const std::string& where) {
  return parse_in(kSlotForms, name, where);
}
Compression parse_compression(const std::string& name, const std::string& where) {
  return parse_in(kCompressions, name, where);
}

BlockForm ChosenEncoding::form_of(const std::string& variable) const {
  BlockForm form{.compression = compression};
  if (!variables.contains(variable)) return form;
  form.rows = rows;
  form.slots = slots;
  return form;
}

BlockForm form_for(const StoredRows& rows, BlockForm wanted) {
  CAIRN_CHECK(wanted.slots != SlotForm::kDropped, "slots are dropped before the rows are encoded");
  BlockForm form{.compression = wanted.compression};
  if (rows.dtype != DType::kFloat32) return form;
  form.slots = wanted.slots;
  const std::size_t exact = bytes_of(RowForm::kExact, static_cast<std::size_t>(rows.dim));
  const bool smaller = bytes_of(wanted.rows, static_cast<std::size_t>(rows.dim)) < exact;
  if (smaller && (wanted.rows != RowForm::kInt8 || all_finite(rows))) form.rows = wanted.rows;
  return form;
}

std::size_t encoded_bytes(const StoredRows& rows, BlockForm form) {
  return form.rows == RowForm::kExact && form.slots == SlotForm::kExact
             ? rows.row_bytes() * rows.offsets.size()
             : RowElements(rows).bytes(form) * rows.offsets.size();
}

std::string encode_values(const StoredRows& rows, BlockForm form) {
  if (form.rows == RowForm::kExact && form.slots == SlotForm::kExact)
    return {reinterpret_cast<const char*>(rows.data.data()), rows.data.size()};
  const RowElements row(rows);
  std::string out(encoded_bytes(rows, form), '\0');
  auto* to = reinterpret_cast<std::byte*>(out.data());
  const auto* from = reinterpret_cast<const float*>(rows.data.data());
  for (std::size_t i = 0; i < rows.offsets.size(); ++i) {
    switch (form.rows) {
      case RowForm::kExact: std::memcpy(to, from, row.parameters * sizeof(float)); break;
      case RowForm::kBfloat16: narrow_to_bfloat16(from, row.parameters, to); break;
      case RowForm::kInt8: narrow_to_int8(from, row.parameters, to); break;
    }
    to += bytes_of(form.rows, row.parameters);
    from += row.parameters;
    if (form.slots == SlotForm::kBfloat16)
      narrow_to_bfloat16(from, row.slots, to);
    else if (row.slots > 0)
      std::memcpy(to, from, row.slots * sizeof(float));
    to += row.slots * (form.slots == SlotForm::kBfloat16 ? 2 : sizeof(float));
    from += row.slots;
  }
  return out;
}

void decode_values(std::string_view values, BlockForm form, StoredRows& rows) {
  const auto* from = reinterpret_cast<const std::byte*>(values.data());
  if (form.rows == RowForm::kExact && form.slots == SlotForm::kExact)
    return rows.data.assign(from, from + values.size());
  const RowElements row(rows);
  rows.data.resize(rows.row_bytes() * rows.offsets.size());
  auto* to = reinterpret_cast<float*>(rows.data.data());
  for (std::size_t i = 0; i < rows.offsets.size(); ++i) {
    switch (form.rows) {
      case RowForm::kExact: std::memcpy(to, from, row.parameters * sizeof(float)); break;
      case RowForm::kBfloat16: widen_from_bfloat16(from, row.parameters, to); break;
      case RowForm::kInt8: widen_from_int8(from, row.parameters, to); break;
    }
    from += bytes_of(form.rows, row.parameters);
    to += row.parameters;
    if (form.slots == SlotForm::kBfloat16)
      widen_from_bfloat16(from, row.slots, to);
    else if (row.slots > 0)
      std::memcpy(to, from, row.slots * sizeof(float));
    from += row.slots * (form.slots == SlotForm::kBfloat16 ? 2 : sizeof(float));
    to += row.slots;
  }
}

void drop_slots(StoredRows& rows) {
  if (rows.slots == 0) return;
  const std::size_t from_bytes = rows.row_bytes();
  rows.rule = RuleKind::kAssign;
  rows.slots = 0;
  const std::size_t bytes = rows.row_bytes();
  // In place, as no row moves backwards over one that is still to come.
  for (std::size_t i = 0; i < rows.offsets.size(); ++i)
    std::memmove(rows.data.data() + i * bytes, rows.data.data() + i * from_bytes, bytes);
  rows.data.resize(rows.offsets.size() * bytes);
}

std::string compressed(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size =
      ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kZstdLevel);
  if (ZSTD_isError(size) != 0 || size >= bytes.size()) return "";
  out.resize(size);
  return out;
}

bool decompress(std::string_view from, std::size_t size, std::string& to) {
  if (size > kCompressedBytesMax) return false;
  to.resize(size);
  return ZSTD_decompress(to.data(), to.size(), from.data(), from.size()) == size;
}

}  // namespace cairn::storage
