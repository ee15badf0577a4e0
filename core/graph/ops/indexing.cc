// Operations that pick slices by id, and their gradients.
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;

// `shape` with axis `axis` replaced by all axes of the ids.
Shape gathered(const Shape& shape, const Shape& ids, int axis) {
  std::vector<std::int64_t> dims = shape.dims();
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, ids.dims().begin(), ids.dims().end());
  return Shape(std::move(dims));
}

OpTypes infer_gather(const OpInputs& in) {
  infer::want_rank_at_least(in, 0, 1);
  infer::want_dtype(in, 1, infer::kIntegers);
  int axis = infer::want_axis(in, in.types[0].shape.rank());
  return {{in.types[0].dtype, gathered(in.types[0].shape, in.types[1].shape, axis)}};
}

// The ids alone do not say how many slices there were, so the third input gives the shape.
OpTypes infer_gather_grad(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  infer::want_dtype(in, 1, infer::kIntegers);
  infer::want_dtype(in, 2, infer::kFloats);
  int axis = infer::want_axis(in, in.types[2].shape.rank());
  if (!infer::shapes_agree(in.types[0].shape, gathered(in.types[2].shape, in.types[1].shape, axis)))
    infer::fail("the gradient does not have the shape of what was gathered");
  return {in.types[2]};
}

// The number of segments is an attribute, as in TensorFlow, because a shape cannot depend on ids.
OpTypes infer_segment_sum(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kArithmetic);
  infer::want_rank_at_least(in, 0, 1);
  infer::want_dtype(in, 1, infer::kIntegers);
  infer::want_rank(in, 1, 1);
  if (!infer::dims_agree(in.types[0].shape[0], in.types[1].shape[0]))
    infer::fail("the numbers of rows and of ids differ");
  std::int64_t segments = in.attributes.get<std::int64_t>("segments");
  if (segments < 0) infer::fail(segments, " segments");
  Shape made = in.types[0].shape.with_dim(0, segments);
  infer::check_made_size(made);
  return {{in.types[0].dtype, made}};
}

// Adds a last axis of `depth`, as tf.one_hot.
OpTypes infer_one_hot(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kIntegers);
  std::int64_t depth = in.attributes.get<std::int64_t>("depth");
  if (depth < 0) infer::fail("a depth of ", depth);
  std::vector<std::int64_t> dims = in.types[0].shape.dims();
  dims.push_back(depth);
  Shape made(std::move(dims));
  infer::check_made_size(made);
  return {{DType::kFloat32, made}};
}

// Rows of example i are [row_splits[i], row_splits[i + 1]), as in tf.RaggedTensor.
void check_combine(const OpInputs& in, int rows) {
  infer::want_dtype(in, rows, infer::kFloats);
  infer::want_rank(in, rows, 2);
  infer::want_dtype(in, 1, {DType::kInt64});
  infer::want_rank(in, 1, 1);
  std::int64_t combiner = in.attributes.get<std::int64_t>("combiner");
  if (combiner < 0 || combiner > 2) infer::fail("no combiner has the number ", combiner);
  if (infer::input(in, 1).shape[0] == 0)
    infer::fail("row_splits has one number more than there are examples, so at least one");
}

// Examples: one less than row_splits.
std::int64_t examples(const Shape& row_splits) {
  return infer::unknown(row_splits[0]) ? Shape::kUnknown : row_splits[0] - 1;
}

OpTypes infer_combine_rows(const OpInputs& in) {
  check_combine(in, 0);
  return {{DType::kFloat32, Shape{examples(in.types[1].shape), in.types[0].shape[1]}}};
}

OpTypes infer_combine_rows_grad(const OpInputs& in) {
  check_combine(in, 2);
  infer::want_dtype(in, 0, infer::kFloats);
  Shape combined{examples(in.types[1].shape), in.types[2].shape[1]};
  if (!infer::shapes_agree(in.types[0].shape, combined))
    infer::fail("the gradient does not have the shape of the combined rows");
  return {in.types[2]};
}

using Arrays = std::vector<Array>;
std::int64_t number(const Array& y, std::string_view name) {
  return y.node()->attributes.get<std::int64_t>(name);
}

// dx has zeros but for the rows of the ids: row ids[i] gets the sum of all dy[i] that came from it.
Arrays grad_gather(const Array& y, const Array& dy) {
  const Arrays& in = y.node()->inputs;
  if (y.dtype() != DType::kFloat32) return {};
  return {gather_grad(dy, in[1], in[0], static_cast<int>(number(y, "axis"))), Array()};
}
Arrays grad_gather_grad(const Array& y, const Array& dy) {
  return {gather(dy, y.node()->inputs[1], static_cast<int>(number(y, "axis"))), Array(), Array()};
}

// Rows whose id was dropped get zeros.
Arrays grad_segment_sum(const Array& y, const Array& dy) {
  const Array &x = y.node()->inputs[0], &ids = y.node()->inputs[1];
  Array zero = cast(Array(0), ids.dtype()), kept = greater_equal(ids, zero);
  Array rows = gather(dy, where(kept, ids, zero));
  std::vector<std::int64_t> column(static_cast<std::size_t>(x.rank()), 1);
  column[0] = ids.shape()[0];
  return {where(reshape(kept, Shape(std::move(column))), rows, 0.0f), Array()};
}

// Each row gets the gradient of the example that it belongs to, weighted as the combiner has it.
Arrays grad_combine_rows(const Array& y, const Array& dy) {
  const Arrays& in = y.node()->inputs;
  return {combine_rows_grad(dy, in[1], in[0], static_cast<Combiner>(number(y, "combiner"))),
          Array()};
}
Arrays grad_combine_rows_grad(const Array& y, const Array& dy) {
  return {combine_rows(dy, y.node()->inputs[1], static_cast<Combiner>(number(y, "combiner"))),
          Array(), Array()};
}

const OpDef kIndexingOps[] = {
    {"gather", 2, 2, "axis", infer_gather, grad_gather},
    {"gather_grad", 3, 3, "axis", infer_gather_grad, grad_gather_grad, OpFlags::kNone, shape_of(2)},
    {"unsorted_segment_sum", 2, 2, "segments", infer_segment_sum, grad_segment_sum},
    {"one_hot", 1, 1, "depth", infer_one_hot},
    {"combine_rows", 2, 2, "combiner", infer_combine_rows, grad_combine_rows},
    {"combine_rows_grad", 3, 3, "combiner", infer_combine_rows_grad, grad_combine_rows_grad,
     OpFlags::kNone, shape_of(2)},
};

}  // namespace

std::span<const OpDef> indexing_ops() { return kIndexingOps; }

Array gather(const Array& x, const Array& ids, int axis) {
  return record("gather", {x, ids},
                {{"axis", std::int64_t{normalize_axis("gather", axis, x.rank())}}});
}
Array gather_grad(const Array& dy, const Array& ids, const Array& like, int axis) {
  return record("gather_grad", {dy, ids, like},
                {{"axis", std::int64_t{normalize_axis("gather_grad", axis, like.rank())}}});
}
Array unsorted_segment_sum(const Array& x, const Array& ids, std::int64_t segments) {
  return record("unsorted_segment_sum", {x, ids}, {{"segments", segments}});
}
Array one_hot(const Array& ids, std::int64_t depth) {
  return record("one_hot", {ids}, {{"depth", depth}});
}
Array combine_rows(const Array& rows, const Array& row_splits, Combiner combiner) {
  return record("combine_rows", {rows, row_splits},
                {{"combiner", static_cast<std::int64_t>(combiner)}});
}
// The weighted combiners of tf.nn.embedding_lookup_sparse: sum w x, divided for the mean by sum w
// and for sqrtn by the root of sum w^2. An example without weight, such as one without rows, gets
// zeros instead of 0 / 0.
Array combine_rows(const Array& rows, const Array& row_splits, Combiner combiner,
                   const Array& weights) {
  if (weights.rank() != 1)
    throw InvalidArgumentError(
        str("combine_rows: the weights are ", weights.type().to_string(), "; one a row is wanted"));
  Array each = expand_dims(weights, 1);
  Array total = combine_rows(rows * each, row_splits, Combiner::kSum);
  if (combiner == Combiner::kSum) return total;
  bool mean = combiner == Combiner::kMean;
  Array mass = combine_rows(mean ? each : square(each), row_splits, Combiner::kSum);
  Array nothing = equal(mass, 0.0f), divisor = where(nothing, 1.0f, mass);
  return where(nothing, 0.0f, total / (mean ? divisor : sqrt(divisor)));
}
Array combine_rows_grad(const Array& dy, const Array& row_splits, const Array& rows,
                        Combiner combiner) {
  return record("combine_rows_grad", {dy, row_splits, rows},
                {{"combiner", static_cast<std::int64_t>(combiner)}});
}

}  // namespace cairn
