#include "storage/single_rows/row_layout.h"

#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/graph/update_rule.h"
#include "storage/row_block.h"

namespace cairn::storage {
namespace {

constexpr std::uint8_t kVersionWithForm = 2;

[[noreturn]] void bad() {
  throw DataLossError(
      "a block of rows is not what it was when it was verified: its file was changed. Restore the "
      "file from a copy; `cairn ckpt verify` names the sound checkpoints");
}

template <typename T>
T take(std::string_view& left) {
  if (left.size() < sizeof(T)) bad();
  T value;
  std::memcpy(&value, left.data(), sizeof value);
  left.remove_prefix(sizeof value);
  return value;
}

std::uint64_t take_varint(std::string_view& left) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = take<std::uint8_t>(left);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  bad();
}

// One row without slots, as the functions of row_encoding.h want it described.
StoredRows bare_row(const RowLayout& layout) {
  StoredRows row;
  row.dtype = layout.dtype;
  row.dim = layout.dim;
  row.offsets = {0};
  return row;
}

}  // namespace

std::size_t RowLayout::parameter_bytes() const {
  return encoded_bytes(bare_row(*this), {form.rows, SlotForm::kExact, Compression::kNone});
}

RowLayout row_layout(std::string_view value) {
  std::string_view left = value;
  RowLayout layout;
  StoredRows row;
  const auto version = take<std::uint8_t>(left);
  layout.dtype = row.dtype = static_cast<DType>(take<std::uint8_t>(left));
  row.rule = static_cast<RuleKind>(take<std::uint8_t>(left));
  layout.contiguous = take<std::uint8_t>(left) != 0;
  row.slots = take<std::uint32_t>(left);
  layout.dim = row.dim = take<std::int64_t>(left);
  layout.count = take<std::uint32_t>(left);
  if (version == kVersionWithForm) {
    layout.form.rows = static_cast<RowForm>(take<std::uint8_t>(left));
    layout.form.slots = static_cast<SlotForm>(take<std::uint8_t>(left));
    layout.form.compression = static_cast<Compression>(take<std::uint8_t>(left));
  }
  layout.list_at = value.size() - left.size();
  for (std::uint32_t i = 1; i < layout.count && !layout.contiguous; ++i) take_varint(left);
  layout.rows_at = value.size() - left.size();
  row.offsets = {0};
  layout.stride = encoded_bytes(row, {layout.form.rows, layout.form.slots, Compression::kNone});
  return layout;
}

void read_row_list(const RowLayout& layout, std::string_view list,
                   std::vector<std::uint64_t>& offsets) {
  offsets.resize(layout.count);
  std::uint64_t offset = 0;
  for (std::uint32_t i = 0; i < layout.count; ++i) {
    if (i > 0) offset += 1 + take_varint(list);
    offsets[i] = offset;
  }
}

void decode_parameters(const RowLayout& layout, const std::byte* from, std::byte* to) {
  const std::size_t bytes = layout.parameter_bytes();
  if (layout.form.rows == RowForm::kExact) {
    std::memcpy(to, from, bytes);
    return;
  }
  StoredRows row = bare_row(layout);
  decode_values({reinterpret_cast<const char*>(from), bytes},
                {layout.form.rows, SlotForm::kExact, Compression::kNone}, row);
  std::memcpy(to, row.data.data(), row.data.size());
}

}  // namespace cairn::storage
