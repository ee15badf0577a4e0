// Losses and softmax, whose kernels are fused and stable.
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;

// One loss per element: nothing is summed, and labels and logits do not broadcast.
OpTypes infer_sigmoid_cross_entropy(const OpInputs& in) {
  for (int i : {0, 1}) infer::want_dtype(in, i, infer::kFloats);
  if (!infer::shapes_agree(in.types[0].shape, in.types[1].shape))
    infer::fail("labels and logits differ in shape (see reshape)");
  return {{DType::kFloat32, infer::merge_shapes(in.types[0].shape, in.types[1].shape)}};
}

// Softmax runs over the last axis.
OpTypes infer_softmax(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  infer::want_rank_at_least(in, 0, 1);
  return {in.types[0]};
}

OpTypes infer_softmax_cross_entropy(const OpInputs& in) {
  for (int i : {0, 1}) infer::want_dtype(in, i, infer::kFloats);
  for (int i : {0, 1}) infer::want_rank(in, i, 2);
  if (!infer::shapes_agree(in.types[0].shape, in.types[1].shape))
    infer::fail("labels and logits differ in shape");
  return {{DType::kFloat32, Shape{infer::merge_dims(in.types[0].shape[0], in.types[1].shape[0])}}};
}

// Labels are class numbers instead of distributions, one loss for each.
OpTypes infer_sparse_cross_entropy(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kIntegers);
  infer::want_rank(in, 0, 1);
  infer::want_dtype(in, 1, infer::kFloats);
  infer::want_rank(in, 1, 2);
  if (!infer::dims_agree(in.types[0].shape[0], in.types[1].shape[0]))
    infer::fail("the numbers of labels and of logits differ");
  return {{DType::kFloat32, Shape{infer::merge_dims(in.types[0].shape[0], in.types[1].shape[0])}}};
}

using Arrays = std::vector<Array>;
const Array& labels(const Array& y) { return y.node()->inputs[0]; }
const Array& logits(const Array& y) { return y.node()->inputs[1]; }

// L = max(x, 0) - x z + log(1 + e^-|x|) for logits x and labels z: dL/dz = -x, dL/dx = sigmoid(x) -
// z.
Arrays grad_sigmoid_cross_entropy(const Array& y, const Array& dy) {
  return {-logits(y) * dy, (sigmoid(logits(y)) - labels(y)) * dy};
}

// y_i = e^x_i / sum e^x has dy_i/dx_j = y_i ([i = j] - y_j), so dx = (dy - sum_i dy_i y_i) y.
Arrays grad_softmax(const Array& y, const Array& dy) {
  return {(dy - reduce_sum(dy * y, {-1}, true)) * y};
}
// y_i = x_i - log sum e^x has dy_i/dx_j = [i = j] - e^y_j, so dx = dy - e^y sum_i dy_i.
Arrays grad_log_softmax(const Array& y, const Array& dy) {
  return {dy - exp(y) * reduce_sum(dy, {-1}, true)};
}

// L = -sum z log softmax(x): dL/dz = -log softmax(x) and dL/dx = softmax(x) sum z - z. A label row
// that does not sum to 1 scales the softmax: the true derivative, where the reference takes the sum
// for 1.
Arrays grad_softmax_cross_entropy(const Array& y, const Array& dy) {
  Array each = expand_dims(dy, 1);
  Array mass = reduce_sum(labels(y), {1}, true);
  return {-log_softmax(logits(y)) * each, (softmax(logits(y)) * mass - labels(y)) * each};
}

// The same with z = 1 at the label and 0 elsewhere.
Arrays grad_sparse_cross_entropy(const Array& y, const Array& dy) {
  std::int64_t classes = logits(y).shape()[1];
  if (infer::unknown(classes))
    throw InvalidArgumentError(
        str(signature_text(*y.node()->op, {}), ": the number of classes is unknown"));
  return {Array(), (softmax(logits(y)) - one_hot(labels(y), classes)) * expand_dims(dy, 1)};
}

const OpDef kLossOps[] = {
    {"sigmoid_cross_entropy_with_logits", 2, 2, "", infer_sigmoid_cross_entropy,
     grad_sigmoid_cross_entropy, OpFlags::kElementwise},
    {"softmax", 1, 1, "", infer_softmax, grad_softmax},
    {"log_softmax", 1, 1, "", infer_softmax, grad_log_softmax},
    {"softmax_cross_entropy_with_logits", 2, 2, "", infer_softmax_cross_entropy,
     grad_softmax_cross_entropy},
    {"sparse_softmax_cross_entropy_with_logits", 2, 2, "", infer_sparse_cross_entropy,
     grad_sparse_cross_entropy},
};

}  // namespace

std::span<const OpDef> loss_ops() { return kLossOps; }

Array sigmoid_cross_entropy_with_logits(const Array& labels, const Array& logits) {
  return record("sigmoid_cross_entropy_with_logits", {labels, logits});
}
Array softmax(const Array& logits) { return record("softmax", {logits}); }
Array log_softmax(const Array& logits) { return record("log_softmax", {logits}); }
Array softmax_cross_entropy_with_logits(const Array& labels, const Array& logits) {
  return record("softmax_cross_entropy_with_logits", {labels, logits});
}
Array sparse_softmax_cross_entropy_with_logits(const Array& labels, const Array& logits) {
  return record("sparse_softmax_cross_entropy_with_logits", {labels, logits});
}

}  // namespace cairn
