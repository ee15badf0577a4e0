// Operations that order the elements of rows, pick among them, and lay ragged rows side by side.
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;
using Arrays = std::vector<Array>;

// An unknown axis takes any k for now; that it holds so many elements is verified when it is run.
OpTypes infer_top_k(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kArithmetic);
  infer::want_rank_at_least(in, 0, 1);
  const Shape& shape = in.types[0].shape;
  const int last = shape.rank() - 1;
  const std::int64_t k = in.attributes.get<std::int64_t>("k");
  if (k < 0) infer::fail("the largest ", k, " elements");
  if (!infer::unknown(shape[last]) && k > shape[last])
    infer::fail("the largest ", k, " of ", shape[last], " elements");
  Shape made = shape.with_dim(last, k);
  if (infer::unknown(shape[last])) infer::check_made_size(made);
  return {{in.types[0].dtype, made}, {DType::kInt64, made}};
}

// `x` with its axis as long as that of the ids.
Shape picked_along(const Shape& x, const Shape& ids, int axis) {
  if (x.rank() != ids.rank() ||
      !infer::shapes_agree(x.with_dim(axis, Shape::kUnknown), ids.with_dim(axis, Shape::kUnknown)))
    infer::fail("the ids differ in other axes than ", axis);
  return infer::merge_shapes(x.with_dim(axis, ids[axis]), ids);
}

OpTypes infer_gather_along(const OpInputs& in) {
  infer::want_fixed_size(in, 0);
  infer::want_dtype(in, 1, infer::kIntegers);
  const Shape& x = in.types[0].shape;
  const int axis = infer::want_axis(in, x.rank());
  return {{in.types[0].dtype, picked_along(x, in.types[1].shape, axis)}};
}

OpTypes infer_gather_along_grad(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  infer::want_dtype(in, 1, infer::kIntegers);
  infer::want_dtype(in, 2, infer::kFloats);
  const Shape& x = in.types[2].shape;
  const int axis = infer::want_axis(in, x.rank());
  if (!infer::shapes_agree(in.types[0].shape, picked_along(x, in.types[1].shape, axis)))
    infer::fail("the gradient does not have the shape of what was gathered");
  return {in.types[2]};
}

// [b, columns, d...] out of values [n, d...] and row_splits [b + 1].
Shape dense_shape(const OpInputs& in, const Shape& values) {
  infer::want_dtype(in, 1, {DType::kInt64});
  infer::want_rank(in, 1, 1);
  const std::int64_t splits = in.types[1].shape[0];
  if (splits == 0)
    infer::fail("row_splits has one number more than there are examples, so at least one");
  const std::int64_t columns = in.attributes.get<std::int64_t>("columns");
  if (columns < 0) infer::fail(columns, " columns");
  std::vector<std::int64_t> dims = values.dims();
  dims[0] = columns;
  dims.insert(dims.begin(), infer::unknown(splits) ? Shape::kUnknown : splits - 1);
  Shape made(std::move(dims));
  infer::check_made_size(made);
  return made;
}

OpTypes infer_to_dense(const OpInputs& in) {
  infer::want_fixed_size(in, 0);
  infer::want_rank_at_least(in, 0, 1);
  infer::want_dtype(in, 2, {in.types[0].dtype});
  infer::want_rank(in, 2, 0);
  return {{in.types[0].dtype, dense_shape(in, in.types[0].shape)}};
}

OpTypes infer_to_dense_grad(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  infer::want_dtype(in, 2, infer::kFloats);
  infer::want_rank_at_least(in, 2, 1);
  if (!infer::shapes_agree(in.types[0].shape, dense_shape(in, in.types[2].shape)))
    infer::fail("the gradient does not have the shape of the dense rows");
  return {in.types[2]};
}

std::int64_t selection_told(const Array& y, std::string_view name) {
  return y.node()->attributes.get<std::int64_t>(name);
}

// An element that was not picked changes nothing.
Arrays grad_top_k(const Array& y, const Array& dy) {
  if (y.dtype() != DType::kFloat32) return {};
  return {gather_along_grad(dy, Array(y.node(), 1), y.node()->inputs[0], -1)};
}

// Each pick is a copy, so its gradient goes where it came from.
Arrays grad_gather_along(const Array& y, const Array& dy) {
  const Arrays& in = y.node()->inputs;
  if (y.dtype() != DType::kFloat32) return {};
  return {gather_along_grad(dy, in[1], in[0], static_cast<int>(selection_told(y, "axis"))),
          Array()};
}
Arrays grad_gather_along_grad(const Array& y, const Array& dy) {
  return {gather_along(dy, y.node()->inputs[1], static_cast<int>(selection_told(y, "axis"))),
          Array(), Array()};
}

// Rows are copied or cut off: the one gradient takes them back, the other lays them out.
Arrays grad_to_dense(const Array& y, const Array& dy) {
  const Arrays& in = y.node()->inputs;
  if (y.dtype() != DType::kFloat32) return {};
  return {to_dense_grad(dy, in[1], in[0], selection_told(y, "columns")), Array(), Array()};
}
Arrays grad_to_dense_grad(const Array& y, const Array& dy) {
  return {to_dense(dy, y.node()->inputs[1], selection_told(y, "columns"), 0.0f), Array(), Array()};
}

const OpDef kSelectionOps[] = {
    {"top_k", 1, 1, "k", infer_top_k, grad_top_k},
    {"gather_along", 2, 2, "axis", infer_gather_along, grad_gather_along},
    {"gather_along_grad", 3, 3, "axis", infer_gather_along_grad, grad_gather_along_grad,
     OpFlags::kNone, shape_of(2)},
    {"to_dense", 3, 3, "columns", infer_to_dense, grad_to_dense},
    {"to_dense_grad", 3, 3, "columns", infer_to_dense_grad, grad_to_dense_grad, OpFlags::kNone,
     shape_of(2)},
};

}  // namespace

std::span<const OpDef> selection_ops() { return kSelectionOps; }

TopK top_k(const Array& x, std::int64_t k) {
  Array values = record("top_k", {x}, {{"k", k}});
  return {values, Array(values.node(), 1)};
}

// A target that is no class is looked up as class 0, so that nothing out of range is read, and
// fails all the same.
Array in_top_k(const Array& predictions, const Array& targets, std::int64_t k) {
  if (predictions.rank() != 2 || targets.rank() != 1 || predictions.dtype() != DType::kFloat32)
    throw InvalidArgumentError(str("in_top_k: predictions are ", predictions.type().to_string(),
                                   " and targets ", targets.type().to_string(),
                                   "; float32 [b, c] and integers [b] are wanted"));
  const Array classes = cast(dim_size(predictions, 1), targets.dtype());
  const Array is_class = logical_and(greater_equal(targets, 0), less(targets, classes));
  const Array target = where(is_class, targets, 0);
  const Array own = gather_along(predictions, expand_dims(target, 1), 1);
  const Array above = reduce_sum(cast(greater(predictions, own), DType::kInt64), {1});
  const Array counts = logical_and(is_class, reduce_all(is_finite(predictions), {1}));
  return logical_and(counts, less(above, k));
}

// Neither -x nor -1 - x overflows for the dtypes that they are used for; both turn the order round.
Array argmin(const Array& x, int axis) {
  return argmax(x.dtype() == DType::kFloat32 ? neg(x) : sub(-1, x), axis);
}

Array gather_along(const Array& x, const Array& ids, int axis) {
  return record("gather_along", {x, ids},
                {{"axis", std::int64_t{normalize_axis("gather_along", axis, x.rank())}}});
}
Array gather_along_grad(const Array& dy, const Array& ids, const Array& like, int axis) {
  return record("gather_along_grad", {dy, ids, like},
                {{"axis", std::int64_t{normalize_axis("gather_along_grad", axis, like.rank())}}});
}

Array to_dense(const Array& values, const Array& row_splits, std::int64_t columns,
               const Array& value) {
  return record("to_dense", {values, row_splits, value.beside(values.dtype())},
                {{"columns", columns}});
}
Array to_dense_grad(const Array& dy, const Array& row_splits, const Array& like,
                    std::int64_t columns) {
  return record("to_dense_grad", {dy, row_splits, like}, {{"columns", columns}});
}

// Ends less begins.
Array row_lengths(const Array& row_splits) {
  if (row_splits.dtype() != DType::kInt64 || row_splits.rank() != 1)
    throw InvalidArgumentError(str("row_lengths: row_splits are ", row_splits.type().to_string(),
                                   "; int64 [b + 1] is wanted"));
  return pad_axis(row_splits, 0, {-1, 0}, 0) - pad_axis(row_splits, 0, {0, -1}, 0);
}
Array row_mask(const Array& row_splits, std::int64_t columns) {
  return less(expand_dims(range(columns), 0), expand_dims(row_lengths(row_splits), 1));
}

}  // namespace cairn
