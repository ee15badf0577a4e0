// The operations on arrays. Each records one node named like the function; kernels live in
// core/kernels/.
//
// Elementwise binary operations broadcast as NumPy does; axes may be negative; dtypes must agree
// (cast() says otherwise), but a C++ integer takes the dtype of the array beside it. An unknown
// leading dimension stays unknown through every operation that keeps it. Errors: InvalidArgument,
// when recording, for dtypes and known dimensions that do not fit; when run, for the unknown ones,
// naming the operation and the shapes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/ops_arrange.h"
#include "core/graph/ops_model.h"
#include "core/graph/ops_random.h"
#include "core/graph/reduce_op.h"

namespace cairn {

// ---- elementwise; float32 unless said otherwise ----
Array neg(const Array& x);  // also int32, int64
Array abs(const Array& x);  // also int32, int64
Array exp(const Array& x);
Array expm1(const Array& x);
Array log(const Array& x);
Array log1p(const Array& x);
Array sqrt(const Array& x);
Array rsqrt(const Array& x);
Array square(const Array& x);  // also int32, int64
Array reciprocal(const Array& x);
Array sigmoid(const Array& x);
Array tanh(const Array& x);
Array relu(const Array& x);
Array softplus(const Array& x);
Array sin(const Array& x);
Array cos(const Array& x);
Array erf(const Array& x);
Array erfc(const Array& x);  // 1 - erf(x), without its loss of digits
Array sign(const Array& x);
Array floor(const Array& x);
Array ceil(const Array& x);
Array round(const Array& x);           // halves go to the even neighbour
Array is_finite(const Array& x);       // -> bool
Array logical_not(const Array& x);     // bool
Array cast(const Array& x, DType to);  // between all numeric dtypes and bool
Array stop_gradient(const Array& x);   // the value; no gradient passes
// The value if every element is finite. Run on a NaN or infinity: InvalidArgument with `what`, the
// step and, where one is to blame, the first variable whose value or gradient is not finite. It is
// run whether or not its result is used. An update that is computed from `x` or from the result,
// and so one from a gradient that passes through the check, is then not made; what does not depend
// on it goes on before the error is raised (core/exec/step.h).
Array check_numerics(const Array& x, const std::string& what);
// x, once `done` has been computed: what is computed from the result depends on `done` too, and on
// its checks. No gradient passes to `done`.
Array after(const Array& x, const Array& done);

Array add(const Array& a, const Array& b);  // arithmetic: float32, int32, int64
Array sub(const Array& a, const Array& b);
Array mul(const Array& a, const Array& b);
Array div(const Array& a, const Array& b);
Array floor_mod(const Array& a, const Array& b);
Array maximum(const Array& a, const Array& b);
Array minimum(const Array& a, const Array& b);
Array pow(const Array& a, const Array& b);
inline Array squared_difference(const Array& a, const Array& b) { return square(sub(a, b)); }
Array equal(const Array& a, const Array& b);  // comparisons -> bool
Array not_equal(const Array& a, const Array& b);
Array less(const Array& a, const Array& b);
Array less_equal(const Array& a, const Array& b);
Array greater(const Array& a, const Array& b);
Array greater_equal(const Array& a, const Array& b);
Array logical_and(const Array& a, const Array& b);
Array logical_or(const Array& a, const Array& b);
Array where(const Array& condition, const Array& a, const Array& b);  // node name "where"

inline Array operator+(const Array& a, const Array& b) { return add(a, b); }
inline Array operator-(const Array& a, const Array& b) { return sub(a, b); }
inline Array operator*(const Array& a, const Array& b) { return mul(a, b); }
inline Array operator/(const Array& a, const Array& b) { return div(a, b); }
inline Array operator-(const Array& x) { return neg(x); }
inline Array& operator+=(Array& a, const Array& b) { return a = add(a, b); }
inline Array& operator-=(Array& a, const Array& b) { return a = sub(a, b); }
inline Array& operator*=(Array& a, const Array& b) { return a = mul(a, b); }
inline Array& operator/=(Array& a, const Array& b) { return a = div(a, b); }
// Element by element, as equal() and its kin: bool arrays, which where(), cast() and reductions
// take and `if` does not.
inline Array operator==(const Array& a, const Array& b) { return equal(a, b); }
inline Array operator!=(const Array& a, const Array& b) { return not_equal(a, b); }
inline Array operator<(const Array& a, const Array& b) { return less(a, b); }
inline Array operator<=(const Array& a, const Array& b) { return less_equal(a, b); }
inline Array operator>(const Array& a, const Array& b) { return greater(a, b); }
inline Array operator>=(const Array& a, const Array& b) { return greater_equal(a, b); }

// ---- linear algebra ----
// [m, k] x [k, n] -> [m, n]. Attributes transpose_a, transpose_b (bool).
Array matmul(const Array& a, const Array& b, bool transpose_a = false, bool transpose_b = false);
// [batch, m, k] x [batch, k, n] -> [batch, m, n]; same attributes.
Array batch_matmul(const Array& a, const Array& b, bool transpose_a = false,
                   bool transpose_b = false);

// ---- reductions; attributes axes (list; empty: all axes), keep_dims (bool) ----
// float32, int32, int64
Array reduce_sum(const Array& x, const std::vector<int>& axes = {}, bool keep_dims = false);
// float32
Array reduce_mean(const Array& x, const std::vector<int>& axes = {}, bool keep_dims = false);
Array reduce_max(const Array& x, const std::vector<int>& axes = {}, bool keep_dims = false);
Array reduce_min(const Array& x, const std::vector<int>& axes = {}, bool keep_dims = false);
// float32, int32, int64
Array reduce_prod(const Array& x, const std::vector<int>& axes = {}, bool keep_dims = false);
// For each factor the product of dy and of the other factors, zeros among them or not. Attribute
// axes.
Array reduce_prod_grad(const Array& dy, const Array& x, const std::vector<int>& axes,
                       bool keep_dims);
// log(sum(exp(x))), shifted so that it neither overflows nor vanishes.
// float32
Array reduce_logsumexp(const Array& x, const std::vector<int>& axes = {}, bool keep_dims = false);
inline Array sum(const Array& x) { return reduce_sum(x); }
inline Array mean(const Array& x) { return reduce_mean(x); }
Array argmax(const Array& x, int axis);  // -> int64; attribute axis

// ---- shapes; any dtype that has a fixed size, reshape and concat strings too ----
Array reshape(const Array& x, const Shape& shape);  // attribute shape (list); one -1 is inferred
Array reshape_like(const Array& x, const Array& like);
Array broadcast_like(const Array& x, const Array& like);
Array sum_to_like(const Array& x, const Array& like);  // the gradient of a broadcast
Array transpose(const Array& x, const std::vector<int>& permutation);  // attribute permutation
Array expand_dims(const Array& x, int axis);                           // records a reshape
Array squeeze(const Array& x, int axis);                               // records a reshape
Array concat(const std::vector<Array>& parts, int axis);               // attribute axis
Array stack(const std::vector<Array>& parts, int axis);                // attribute axis
// x[..., begin:begin+size, ...] along one axis. Attributes axis, begin, size (-1: to the end).
Array slice(const Array& x, int axis, std::int64_t begin, std::int64_t size);
// Equal pieces, or pieces of these sizes, which together fill the axis. InvalidArgument: they do
// not, or its size is unknown.
std::vector<Array> split(const Array& x, int pieces, int axis);
std::vector<Array> split(const Array& x, const std::vector<std::int64_t>& sizes, int axis);
// zeros but for the slice; same attributes
Array slice_grad(const Array& dy, const Array& like, int axis, std::int64_t begin);
// The piece of `dy` (a gradient of concat) that belongs to part i of `parts`. Attributes axis,
// index.
Array concat_grad(const Array& dy, const std::vector<Array>& parts, int axis, int index);
Array zeros_like(const Array& x);
Array ones_like(const Array& x);
Array dim_size(const Array& x, int axis);  // int64 scalar; attribute axis
Array element_count(const Array& x);       // int64 scalar

// ---- indexing ---- Slices of x along `axis` by int32/int64 ids. Attribute axis. An id out of
// range: InvalidArgument naming id and bound.
Array gather(const Array& x, const Array& ids, int axis = 0);
// The gradient of gather: dy's slices summed into zeros shaped like `like`. Attribute axis.
Array gather_grad(const Array& dy, const Array& ids, const Array& like, int axis = 0);
// Where each of `keys`, int64 or string of any shape, stands among `sorted` [n], ascending and of
// the same dtype: int64 positions, n for a key that is not there. StaticHashTable looks up by it.
Array find_key(const Array& keys, const Array& sorted);
// [n, d...], ids [n] -> [segments, d...]; rows with an id below 0 are dropped; an id from
// `segments` on: InvalidArgument. Attribute segments.
Array unsorted_segment_sum(const Array& x, const Array& ids, std::int64_t segments);
// float32 [..., depth]; ids out of range give zeros. Attribute depth
Array one_hot(const Array& ids, std::int64_t depth);
// x [n, d...] with its rows `ids` [k] changed by `rows` [k, d...], one after another: equal ids
// accumulate, and of equal ids scatter_update() keeps the last. An id out of range:
// InvalidArgument.
Array scatter_add(const Array& x, const Array& ids, const Array& rows);
Array scatter_sub(const Array& x, const Array& ids, const Array& rows);
// of equal extremes each gets an equal share of the gradient
Array scatter_max(const Array& x, const Array& ids, const Array& rows);
Array scatter_min(const Array& x, const Array& ids, const Array& rows);
Array scatter_update(const Array& x, const Array& ids, const Array& rows);
Array is_last_of_id(const Array& ids);  // bool [k]: no later position holds the same id
// Rows of ragged examples combined: rows [n, d], row_splits int64 [b + 1] -> [b, d]. An example
// without rows gives zeros.
enum class Combiner : std::uint8_t { kSum = 0, kMean = 1, kSqrtn = 2 };
// attribute combiner (int)
Array combine_rows(const Array& rows, const Array& row_splits, Combiner combiner);
// The same with a weight a row, [n]: the weighted sum, divided by the sum of the weights (mean) or
// the root of the sum of their squares (sqrtn); zeros where that is 0.
Array combine_rows(const Array& rows, const Array& row_splits, Combiner combiner,
                   const Array& weights);
Array combine_rows_grad(const Array& dy, const Array& row_splits, const Array& rows,
                        Combiner combiner);

// ---- losses, with fused and stable kernels; one value an example ----
Array sigmoid_cross_entropy_with_logits(const Array& labels, const Array& logits);
Array softmax(const Array& logits);  // over the last axis
Array log_softmax(const Array& logits);
// [b, c] each -> [b]
Array softmax_cross_entropy_with_logits(const Array& labels, const Array& logits);
// ids [b] -> [b]
Array sparse_softmax_cross_entropy_with_logits(const Array& labels, const Array& logits);

// ---- recommendation ---- The distinct pairwise dot products of the `f` vectors of each example:
// [b, f, d] -> [b, f (f - 1) / 2], row-major over the strict lower triangle (Naumov et al., "DLRM",
// arXiv:1906.00091).
Array dot_interaction(const Array& vectors);
Array dot_interaction_grad(const Array& dy, const Array& vectors);

// ---- across replicas ----
// Reduces, element by element, the values that all replicas in sync give here: every one of them
// gets the same bits. All replicas run the same function, so their all-reduces meet in program
// order. Several values in one call may travel together. The gradient is the same reduction of the
// gradients. With one replica the result is `x` itself, at no cost.
// float32; the sum also int32, int64. Attribute reduction.
Array all_reduce(ReduceOp op, const Array& x);
std::vector<Array> all_reduce(ReduceOp op, const std::vector<Array>& parts);

// ---- strings (at the data edge) -> int64 ----
// attribute buckets; a 64-bit FNV-1a then mixed, modulo buckets
Array string_hash_bucket(const Array& text, std::int64_t buckets);

}  // namespace cairn
