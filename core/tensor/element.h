// Elements, which a dataset yields: an element is a flat, ordered set of named columns, at most one
// of which is the label. An element may be one example, or, above batch(), a batch whose columns
// have a leading dimension.
//   Thread  values without shared state; any.
#pragma once
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace cairn {

// A column's name and the type of its tensors.
struct ColumnSpec {
  std::string name;
  TensorType type;  // a batch's leading dimension may be unknown
  bool operator==(const ColumnSpec&) const = default;
};

// The columns in order. A ragged column NAME, in which the number of ids varies by example, is two
// columns: "NAME" holds the values of all examples one after another, "NAME/row_splits" (int64,
// [batch + 1]) says where each example begins.
struct ElementSpec {
  std::vector<ColumnSpec> columns;
  std::string label;  // the column that get_next() hands out apart from the features; empty: none
  // The place of a column in `columns` and in every Element.
  //   Errors  InvalidArgument: there is no such column; names the nearest one.
  std::size_t find(const std::string& name) const;
  bool operator==(const ElementSpec&) const = default;
};

using Element = std::vector<Tensor>;  // one tensor per column, in the order of the spec

// The one of `names` that is nearest to `name` by edit distance, for "did you mean" in messages;
// empty if none is near enough to be a misspelling. It costs the product of both lengths per name,
// so it is for errors only.
std::string nearest_name(const std::string& name, const std::vector<std::string>& names);

}  // namespace cairn
