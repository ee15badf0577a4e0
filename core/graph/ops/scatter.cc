// Rows of an array changed by id, and what becomes of the gradient.
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;
using Arrays = std::vector<Array>;

// x [n, d...], ids [k], rows [k, d...]. The result has the shape of x, which itself stays as it
// was.
OpTypes infer_scatter(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kArithmetic);
  infer::want_rank_at_least(in, 0, 1);
  infer::want_dtype(in, 1, infer::kIntegers);
  infer::want_rank(in, 1, 1);
  infer::want_dtype(in, 2, {in.types[0].dtype});
  Shape wanted = in.types[0].shape.with_dim(0, in.types[1].shape[0]);
  if (!infer::shapes_agree(in.types[2].shape, wanted))
    infer::fail("the rows are ", in.types[2].shape.to_string(), "; ", wanted.to_string(),
                " is wanted");
  return {in.types[0]};
}

// Marks the rows that scatter_update() keeps: its gradient needs them.
OpTypes infer_last_of_id(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kIntegers);
  infer::want_rank(in, 0, 1);
  return {{DType::kBool, in.types[0].shape}};
}

bool has_gradient(const Array& y) { return y.dtype() == DType::kFloat32; }
const Array& input(const Array& y, std::size_t i) { return y.node()->inputs[i]; }

// y = x with rows added at the ids: x passes its gradient on, and row i gets that of row ids[i].
Arrays grad_add(const Array& y, const Array& dy) {
  if (!has_gradient(y)) return {};
  return {dy, Array(), gather(dy, input(y, 1))};
}

Arrays grad_sub(const Array& y, const Array& dy) {
  if (!has_gradient(y)) return {};
  return {dy, Array(), -gather(dy, input(y, 1))};
}

// Everything that equals the result made it, in equal shares.
Arrays grad_scatter_extreme(const Array& y, const Array& dy) {
  if (!has_gradient(y)) return {};
  const Array& ids = input(y, 1);
  Array from_x = cast(equal(input(y, 0), y), DType::kFloat32);
  Array from_rows = cast(equal(input(y, 2), gather(y, ids)), DType::kFloat32);
  Array share = dy / scatter_add(from_x, ids, from_rows);
  return {from_x * share, Array(), from_rows * gather(share, ids)};
}

// A row of x that was overwritten has no part in the result, nor has a new row that a later one of
// the same id has overwritten.
Arrays grad_update(const Array& y, const Array& dy) {
  if (!has_gradient(y)) return {};
  const Array &ids = input(y, 1), &rows = input(y, 2);
  std::vector<std::int64_t> column(static_cast<std::size_t>(rows.rank()), 1);
  column[0] = ids.shape()[0];
  Array lasting = reshape(is_last_of_id(ids), Shape(std::move(column)));
  return {scatter_update(dy, ids, zeros_like(rows)), Array(),
          where(lasting, gather(dy, ids), 0.0f)};
}

const OpDef kScatterOps[] = {
    {"scatter_add", 3, 3, "", infer_scatter, grad_add},
    {"scatter_sub", 3, 3, "", infer_scatter, grad_sub},
    {"scatter_max", 3, 3, "", infer_scatter, grad_scatter_extreme},
    {"scatter_min", 3, 3, "", infer_scatter, grad_scatter_extreme},
    {"scatter_update", 3, 3, "", infer_scatter, grad_update},
    {"is_last_of_id", 1, 1, "", infer_last_of_id},
};

}  // namespace

std::span<const OpDef> scatter_ops() { return kScatterOps; }

Array scatter_add(const Array& x, const Array& ids, const Array& rows) {
  return record("scatter_add", {x, ids, rows});
}
Array scatter_sub(const Array& x, const Array& ids, const Array& rows) {
  return record("scatter_sub", {x, ids, rows});
}
Array scatter_max(const Array& x, const Array& ids, const Array& rows) {
  return record("scatter_max", {x, ids, rows});
}
Array scatter_min(const Array& x, const Array& ids, const Array& rows) {
  return record("scatter_min", {x, ids, rows});
}
Array scatter_update(const Array& x, const Array& ids, const Array& rows) {
  return record("scatter_update", {x, ids, rows});
}
Array is_last_of_id(const Array& ids) { return record("is_last_of_id", {ids}); }

}  // namespace cairn
