// Which columns of a signature are ragged.
//   Thread  any.
#pragma once
#include <cstddef>
#include <vector>

#include "core/tensor/element.h"

namespace cairn::serving {

inline constexpr std::size_t kNoColumn = std::size_t(-1);

// For each column of the spec, by its place there.
struct RaggedColumns {
  // The place of "NAME/row_splits", of a ragged column NAME; kNoColumn: the column is not ragged.
  std::vector<std::size_t> splits;
  // Whether the column is itself the row splits of another one.
  std::vector<bool> is_splits;
};
RaggedColumns find_ragged(const std::vector<ColumnSpec>& columns);

}  // namespace cairn::serving
