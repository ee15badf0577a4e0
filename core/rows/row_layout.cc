#include "core/rows/row_layout.h"

#include <bit>

namespace cairn {
namespace {

constexpr std::size_t kLineBytes = 64;

// A row of at most a cache line is padded to a power of two, so that none lies across two lines.
std::int64_t padded_row(std::size_t bytes, std::size_t element_bytes) {
  if (bytes > 0 && bytes <= kLineBytes) bytes = std::bit_ceil(bytes);
  return static_cast<std::int64_t>(bytes / element_bytes);
}

}  // namespace

RowLayout::RowLayout(const VariableSpec& spec, const UpdateRule& rule, std::int64_t rows)
    : element_bytes(dtype_bytes(spec.dtype)),
      dim(spec.dim()),
      slots(static_cast<std::uint32_t>(rule_slots(rule).size())),
      slot_width(cairn::slot_width(rule.kind, dim)) {
  planes =
      !spec.hashed && slot_width == dim && (spec.shape.rank() < 2 || spec.rows() < kRowsBeside);
  if (planes) {
    // Each plane begins a line, so that no two of them share one.
    const auto line = static_cast<std::int64_t>(kLineBytes / element_bytes);
    stride = dim;
    slot_offset = (rows * dim + line - 1) / line * line;
  } else {
    stride = padded_row(saved_row_bytes(), element_bytes);
    slot_offset = dim;
  }
}

std::size_t RowLayout::bytes(std::int64_t rows) const {
  return planes ? static_cast<std::size_t>(slot_offset * (1 + slots)) * element_bytes
                : static_cast<std::size_t>(rows) * stride_bytes();
}

}  // namespace cairn
