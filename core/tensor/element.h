// What a dataset yields: an element is a flat, ordered set of named columns, at most one of them
// the label.
#pragma once
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace cairn {

struct ColumnSpec {
  std::string name;
  TensorType type;  // a batch's leading dimension may be unknown
  bool operator==(const ColumnSpec&) const = default;
};

// A ragged column NAME (ids per example vary) is two columns: "NAME" holds the values of all
// examples one after another, "NAME/row_splits" (int64, [batch + 1]) where each example begins.
struct ElementSpec {
  std::vector<ColumnSpec> columns;
  std::string label;  // the column that get_next() hands out apart from the features; empty: none
  // The place of a column. InvalidArgument: no such column; names the nearest one.
  std::size_t find(const std::string& name) const;
  bool operator==(const ElementSpec&) const = default;
};

using Element = std::vector<Tensor>;  // one tensor a column, in the order of the spec

// The stored value nearest to `name` by edit distance, for messages; empty if none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& names);

}  // namespace cairn
