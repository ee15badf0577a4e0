// Operations that order, pick, pad and repeat elements. Recorded as those of core/graph/ops.h,
// which includes this file; the same errors. Each is computed on the device of its replica.
#pragma once
#include <cstdint>
#include <vector>

#include "core/graph/array.h"

namespace cairn {

// ---- order ----
struct TopK {
  Array values;   // [..., k], of the dtype of what was ordered
  Array indices;  // int64 [..., k]: where along the last axis each value stood
};
// The k largest elements along the last axis, the largest first; of equal ones that with the lower
// index comes first, and a NaN comes last. float32, int32, int64. Attribute k. The gradient of
// `values` goes to the elements that were picked.
//   Errors  InvalidArgument: k is below 0 or above the size of the axis.
//   Cost    the CPU sorts k of n elements; a GPU passes over the n elements k times, so that a
//           large k is slow there.
TopK top_k(const Array& x, std::int64_t k);
// bool [b]: fewer than k classes of example i have a larger prediction than its target has.
// predictions float32 [b, c], targets [b] int32 or int64. False where a prediction of the example
// is not finite, and where the target is no class.
Array in_top_k(const Array& predictions, const Array& targets, std::int64_t k);
Array argmin(const Array& x, int axis);  // -> int64; the first of equal elements, as argmax()

// ---- running sums ----
struct CumsumOptions {
  bool exclusive = false;  // element i is not part of the sum at i
  bool reverse = false;    // the sum at i begins at the end of the axis
};
// The sums of all elements up to each one along the axis. float32 (added in double), int32, int64.
// Attributes axis, exclusive, reverse.
//   Cost  one pass; a GPU's threads share the other axes, not this one.
Array cumsum(const Array& x, int axis, const CumsumOptions& options = {});

// ---- bounds and truth ----
// Elements below `low` become `low`, those above `high` become `high`; both broadcast. Of elements
// that equal a bound the gradient goes to x. (nn::clip_by_value takes two numbers.)
Array clip_by_value(const Array& x, const Array& low, const Array& high);
Array logical_xor(const Array& a, const Array& b);  // bool
// bool; empty axes: all axes. Of no elements none is true, and all are.
Array reduce_any(const Array& x, const std::vector<int>& axes = {}, bool keep_dims = false);
Array reduce_all(const Array& x, const std::vector<int>& axes = {}, bool keep_dims = false);

// ---- padding and repeating; any dtype that has a fixed size ----
// How many elements come before and after those of an axis; a negative number cuts so many off.
struct AxisPadding {
  std::int64_t before = 0;
  std::int64_t after = 0;
};
// x with copies of `value` around it: a scalar of x's dtype, into which a C++ integer turns. One
// padding per axis. No gradient passes to `value`. Node "pad" per axis that is padded, attributes
// axis, before, after.
//   Errors  InvalidArgument: not as many paddings as axes; more is cut off than there is; what is
//           added makes more than 2^30 elements.
Array pad(const Array& x, const std::vector<AxisPadding>& paddings, const Array& value);
Array pad_axis(const Array& x, int axis, const AxisPadding& padding, const Array& value);
// The whole axis, multiples[axis] times one after another. Recorded as gathers.
Array tile(const Array& x, const std::vector<std::int64_t>& multiples);
// Each element `times` times in its place: [a, b] becomes [a, a, b, b]. Recorded as a gather.
Array repeat_elements(const Array& x, std::int64_t times, int axis);
// The axis from its end to its beginning. Recorded as a gather.
Array reverse(const Array& x, int axis);
Array range(std::int64_t n);                      // int64 [n]: 0, 1, ... n - 1; a constant
Array positions_along(const Array& x, int axis);  // int64: range() of the size of x's axis

// ---- picking in each row ----
// Elements of x along `axis`, by ids of their own for every row: x [b, n], ids [b, k] -> [b, k]
// along axis 1. x and ids have the same rank, and the same size in all other axes; ids are int32 or
// int64. Attribute axis. An id out of range: InvalidArgument naming id and bound.
Array gather_along(const Array& x, const Array& ids, int axis);
// The gradient of gather_along: zeros shaped like `like`, to which dy's elements are added at their
// ids. Attribute axis.
Array gather_along_grad(const Array& dy, const Array& ids, const Array& like, int axis);

// ---- ragged rows ----
// Rows of ragged examples side by side: values [n, d...] of any dtype of fixed size, row_splits
// int64 [b + 1] -> [b, columns, d...]. An example with more than `columns` rows is cut, one with
// fewer is filled with `value`, a scalar of the values' dtype, to which no gradient passes.
// Attribute columns.
//   Errors  InvalidArgument: row_splits that do not ascend from 0 to n.
Array to_dense(const Array& values, const Array& row_splits, std::int64_t columns,
               const Array& value);
// The gradient of to_dense: row r gets the element of dy at its place; zeros where it was cut off.
Array to_dense_grad(const Array& dy, const Array& row_splits, const Array& like,
                    std::int64_t columns);
Array row_lengths(const Array& row_splits);  // int64 [b]
// bool [b, columns]: whether to_dense() has put a row of the example there.
Array row_mask(const Array& row_splits, std::int64_t columns);

}  // namespace cairn
