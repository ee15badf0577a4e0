// RowLayout: how the rows of one part of a variable lie in memory, with their slots. One rule for
// every store, so that a variable lies on a ps as it does in a process of its own.
//
//   Planes  All parameters lie together, then all of the first slot, and so on. So do variables of
//           rank 0 and 1, and those of fewer than kRowsBeside rows: they are mostly read and
//           updated whole, which is one copy and one loop. Few rows stay in the caches anyway, so
//           that scattered reads and updates lose nothing.
//   Beside  A row is followed by its slots. So do all other variables: an update of a few rows out
//           of many then waits for memory once per row, not once per slot as well. A row of up to
//           64 bytes, slots included, is padded to a power of two, so that it lies in one cache
//           line.
//   Two kinds lie beside whatever their size: rows whose slots have another width than they have
//   (Adagrad with one number per row), since planes share one stride; and hashed rows, since planes
//   could not grow without moving.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/graph/update_rule.h"
#include "core/graph/variable.h"

namespace cairn {

// Counts are in elements of the variable's dtype, as in RowBlock, where they are not called bytes.
struct RowLayout {
  // A variable with fewer rows than this, over all of its parts, is stored in planes.
  static constexpr std::int64_t kRowsBeside = 1 << 14;

  std::size_t element_bytes = 4;
  std::int64_t dim = 1;  // parameters of a row
  std::uint32_t slots = 0;
  std::int64_t slot_width = 1;
  std::int64_t stride = 1;       // from one row to the next
  std::int64_t slot_offset = 1;  // from a row's parameters to its first slot, and to the next slot
  bool planes = false;

  RowLayout() = default;
  // For a part of `rows` rows; a hashed variable's part grows, and takes any number.
  RowLayout(const VariableSpec& spec, const UpdateRule& rule, std::int64_t rows);

  // Whether consecutive rows lie as they travel: parameters only, without gaps.
  bool packed() const { return stride == dim; }
  std::size_t row_bytes() const { return static_cast<std::size_t>(dim) * element_bytes; }
  std::size_t slot_bytes() const { return static_cast<std::size_t>(slot_width) * element_bytes; }
  // A row with its slots, without gaps, as a checkpoint holds it.
  std::size_t saved_row_bytes() const { return row_bytes() + slots * slot_bytes(); }
  std::size_t stride_bytes() const { return static_cast<std::size_t>(stride) * element_bytes; }
  // The bytes of memory that a part of `rows` rows takes, slots and gaps included.
  std::size_t bytes(std::int64_t rows) const;
};

}  // namespace cairn
