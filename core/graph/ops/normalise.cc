// Layer and batch normalisation. A node's outputs are the result, then mean and variance, which its
// gradient takes up again.
#include <cmath>

#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;
using Arrays = std::vector<Array>;

void check_epsilon(const OpInputs& in) {
  double epsilon = in.attributes.get<double>("epsilon");
  if (!(epsilon >= 0) || !std::isfinite(epsilon))
    infer::fail("epsilon is ", epsilon, "; at least 0 is wanted");
}

void want_floats(const OpInputs& in) {
  for (int i = 0; i < static_cast<int>(in.types.size()); ++i)
    infer::want_dtype(in, i, infer::kFloats);
}

std::int64_t last_of(const Shape& x) { return x[x.rank() - 1]; }

// A vector beside the last axis of `x`.
void want_vector(const OpInputs& in, int i, const Shape& x) {
  infer::want_rank(in, i, 1);
  if (!infer::dims_agree(infer::input(in, i).shape[0], last_of(x)))
    infer::fail("input ", i, " has ", infer::input(in, i).shape[0], " numbers; the last axis has ",
                last_of(x));
}

// x, gamma, beta.
const Shape& check_forward(const OpInputs& in) {
  check_epsilon(in);
  want_floats(in);
  infer::want_rank_at_least(in, 0, 1);
  const Shape& x = in.types[0].shape;
  want_vector(in, 1, x);
  want_vector(in, 2, x);
  return x;
}

Shape without_last(const Shape& x) {
  return Shape(std::vector<std::int64_t>(x.dims().begin(), x.dims().end() - 1));
}

// y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with mean and variance of each example
// over the last axis: Ba, Kiros, Hinton, 2016.
OpTypes infer_layer_norm(const OpInputs& in) {
  const Shape& x = check_forward(in);
  TensorType statistic{DType::kFloat32, without_last(x)};
  return {in.types[0], statistic, statistic};
}

// The same with mean and variance of each channel over all other axes: Ioffe, Szegedy, ICML 2015.
OpTypes infer_batch_norm(const OpInputs& in) {
  const Shape& x = check_forward(in);
  TensorType statistic{DType::kFloat32, Shape{infer::merge_dims(last_of(x), in.types[1].shape[0])}};
  return {in.types[0], statistic, statistic};
}

// dy, x, gamma, mean, variance -> dx, dgamma, dbeta.
OpTypes check_backward(const OpInputs& in, const Shape& statistic) {
  const Shape& x = in.types[1].shape;
  if (!infer::shapes_agree(in.types[0].shape, x))
    infer::fail("the gradient does not have the shape of the result");
  want_vector(in, 2, x);
  for (int i : {3, 4})
    if (!infer::shapes_agree(infer::input(in, i).shape, statistic))
      infer::fail("input ", i, " is no mean or variance of input 1");
  return {in.types[1], in.types[2], in.types[2]};
}

OpTypes infer_layer_norm_grad(const OpInputs& in) {
  check_epsilon(in);
  want_floats(in);
  infer::want_rank_at_least(in, 1, 1);
  return check_backward(in, without_last(in.types[1].shape));
}

OpTypes infer_batch_norm_grad(const OpInputs& in) {
  check_epsilon(in);
  want_floats(in);
  infer::want_rank_at_least(in, 1, 1);
  return check_backward(in, Shape{last_of(in.types[1].shape)});
}

Arrays record_backward(std::string_view op, const Array& y, const Array& dy) {
  const Arrays& in = y.node()->inputs;
  Array dx = record(op, {dy, in[0], in[1], Array(y.node(), 1), Array(y.node(), 2)},
                    {{"epsilon", y.node()->attributes.get<double>("epsilon")}});
  return {dx, Array(dx.node(), 1), Array(dx.node(), 2)};
}

Arrays grad_layer_norm(const Array& y, const Array& dy) {
  return record_backward("layer_norm_grad", y, dy);
}
Arrays grad_batch_norm(const Array& y, const Array& dy) {
  return record_backward("batch_norm_grad", y, dy);
}
Arrays no_second_derivative(const Array& y, const Array&) {
  throw UnimplementedError(str("the second derivative of a normalisation, ", y.node()->op->name));
}

const OpDef kNormaliseOps[] = {
    {"layer_norm", 3, 3, "epsilon", infer_layer_norm, grad_layer_norm},
    {"layer_norm_grad", 5, 5, "epsilon", infer_layer_norm_grad, no_second_derivative},
    {"batch_norm", 3, 3, "epsilon", infer_batch_norm, grad_batch_norm},
    {"batch_norm_grad", 5, 5, "epsilon", infer_batch_norm_grad, no_second_derivative},
};

}  // namespace

std::span<const OpDef> normalise_ops() { return kNormaliseOps; }

Array layer_norm(const Array& x, const Array& gamma, const Array& beta, float epsilon) {
  return record("layer_norm", {x, gamma, beta}, {{"epsilon", double{epsilon}}});
}

// Mean and variance are for the moving averages, through which nothing is learnt.
BatchNorm batch_norm(const Array& x, const Array& gamma, const Array& beta, float epsilon) {
  Array y = record("batch_norm", {x, gamma, beta}, {{"epsilon", double{epsilon}}});
  return {y, stop_gradient(Array(y.node(), 1)), stop_gradient(Array(y.node(), 2))};
}

}  // namespace cairn
