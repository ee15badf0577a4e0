// Reductions over axes.
#include <algorithm>

#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using Axes = std::vector<std::int64_t>;

// No axes mean all axes, as in NumPy.
bool reduces(const Axes& axes, int axis) {
  return axes.empty() || std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// Ascending and distinct axes give one form to equal reductions.
infer::OpTypes reduced(const OpInputs& in) {
  const Shape& shape = in.types[0].shape;
  const Axes& axes = in.attributes.get<Axes>("axes");
  bool keep = in.attributes.get<bool>("keep_dims");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= shape.rank())
      infer::fail("axis ", axes[i], " of a value of rank ", shape.rank());
    if (i > 0 && axes[i] <= axes[i - 1]) infer::fail("the axes are not ascending and distinct");
  }
  std::vector<std::int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduces(axes, i))
      dims.push_back(shape[i]);
    else if (keep)
      dims.push_back(1);
  }
  return {{in.types[0].dtype, Shape(std::move(dims))}};
}

infer::OpTypes infer_arithmetic(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kArithmetic);
  return reduced(in);
}
infer::OpTypes infer_float(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  return reduced(in);
}
// As tf.argmax: int64, and the axis is gone.
infer::OpTypes infer_argmax(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kArithmetic);
  const Shape& shape = in.types[0].shape;
  int axis = infer::want_axis(in, shape.rank());
  std::vector<std::int64_t> dims = shape.dims();
  dims.erase(dims.begin() + axis);
  return {{DType::kInt64, Shape(std::move(dims))}};
}

// Recorded in one form, so that equal reductions are found to be equal when the graph is lowered.
Axes normal_axes(std::string_view op, const std::vector<int>& axes, int rank) {
  Axes normal;
  for (int axis : axes) normal.push_back(normalize_axis(op, axis, rank));
  std::sort(normal.begin(), normal.end());
  return normal;
}

Array record_reduction(std::string_view op, const Array& x, const std::vector<int>& axes,
                       bool keep_dims) {
  return record(op, {x}, {{"axes", normal_axes(op, axes, x.rank())}, {"keep_dims", keep_dims}});
}

struct Reduction {
  explicit Reduction(const Array& y)
      : x(y.node()->inputs[0]),
        axes(y.node()->attributes.get<Axes>("axes")),
        kept(y.node()->attributes.get<bool>("keep_dims")) {}
  const Array& x;
  const Axes& axes;
  bool kept;
};

// `value`, shaped like the reduction's result, such that it stretches to the input.
Array keep_dims(const Reduction& of, const Array& value) {
  bool leading = true;  // dropped axes in front come back by themselves
  for (std::size_t i = 0; i < of.axes.size(); ++i)
    leading &= of.axes[i] == static_cast<std::int64_t>(i);
  if (of.kept || leading) return value;
  std::vector<int> axes(of.axes.begin(), of.axes.end());
  std::vector<std::int64_t> dims;
  for (int i = 0; i < of.x.rank(); ++i) dims.push_back(reduces(of.axes, i) ? 1 : of.x.shape()[i]);
  if (std::count(dims.begin(), dims.end(), Shape::kUnknown) <= 1)
    return reshape(value, Shape(std::move(dims)));
  // no shape says it: take one that is computed
  return reshape_like(value, reduce_sum(of.x, axes, true));
}

// How many elements went into each result: float32.
Array elements_reduced(const Reduction& of) {
  float known = 1;
  Array unknown;
  for (int i = 0; i < of.x.rank(); ++i) {
    if (!reduces(of.axes, i)) continue;
    if (!infer::unknown(of.x.shape()[i])) {
      known *= static_cast<float>(of.x.shape()[i]);
      continue;
    }
    Array size = cast(dim_size(of.x, i), DType::kFloat32);
    unknown = unknown.defined() ? unknown * size : size;
  }
  if (!unknown.defined()) return known;
  return known == 1 ? unknown : unknown * known;
}

// Every summand has derivative 1: dy, stretched over the axes that were summed.
std::vector<Array> grad_sum(const Array& y, const Array& dy) {
  Reduction of(y);
  return {stretch(keep_dims(of, dy), of.x)};
}

// As the sum's, divided by the number of elements, which is computed when a dimension is unknown.
std::vector<Array> grad_mean(const Array& y, const Array& dy) {
  Reduction of(y);
  return {stretch(keep_dims(of, dy / elements_reduced(of)), of.x)};
}

// If several elements are extreme, each gets an equal share of the gradient.
std::vector<Array> grad_extreme(const Array& y, const Array& dy) {
  Reduction of(y);
  std::vector<int> axes(of.axes.begin(), of.axes.end());
  Array chosen = cast(equal(of.x, keep_dims(of, y)), DType::kFloat32);
  Array share = dy / reduce_sum(chosen, axes, of.kept);
  return {chosen * keep_dims(of, share)};
}

// dx_i = dy times the product of all other elements. That is y / x_i only where x_i is not 0, so a
// kernel multiplies the others.
std::vector<Array> grad_prod(const Array& y, const Array& dy) {
  Reduction of(y);
  if (y.dtype() != DType::kFloat32) return {};
  return {reduce_prod_grad(dy, of.x, {of.axes.begin(), of.axes.end()}, of.kept)};
}

infer::OpTypes infer_prod_grad(const OpInputs& in) {
  for (int i : {0, 1}) infer::want_dtype(in, i, infer::kFloats);
  infer::OpTypes product = reduced({in.types.subspan(1), in.attributes, {}});
  if (!infer::shapes_agree(in.types[0].shape, product[0].shape))
    infer::fail("the gradient does not have the shape of the products");
  return {in.types[1]};
}

std::vector<Array> grad_prod_grad(const Array&, const Array&) {
  throw UnimplementedError("the second derivative of reduce_prod");
}

const OpDef kReductionOps[] = {
    {"reduce_sum", 1, 1, "axes keep_dims", infer_arithmetic, grad_sum},
    {"reduce_mean", 1, 1, "axes keep_dims", infer_float, grad_mean},
    {"reduce_max", 1, 1, "axes keep_dims", infer_arithmetic, grad_extreme},
    {"reduce_min", 1, 1, "axes keep_dims", infer_arithmetic, grad_extreme},
    {"reduce_prod", 1, 1, "axes keep_dims", infer_arithmetic, grad_prod},
    {"reduce_prod_grad", 2, 2, "axes keep_dims", infer_prod_grad, grad_prod_grad},
    {"argmax", 1, 1, "axis", infer_argmax},
};

}  // namespace

std::span<const OpDef> reduction_ops() { return kReductionOps; }

Array reduce_sum(const Array& x, const std::vector<int>& axes, bool keep_dims) {
  return record_reduction("reduce_sum", x, axes, keep_dims);
}
Array reduce_mean(const Array& x, const std::vector<int>& axes, bool keep_dims) {
  return record_reduction("reduce_mean", x, axes, keep_dims);
}
Array reduce_max(const Array& x, const std::vector<int>& axes, bool keep_dims) {
  return record_reduction("reduce_max", x, axes, keep_dims);
}
Array reduce_min(const Array& x, const std::vector<int>& axes, bool keep_dims) {
  return record_reduction("reduce_min", x, axes, keep_dims);
}
Array reduce_prod(const Array& x, const std::vector<int>& axes, bool keep_dims) {
  return record_reduction("reduce_prod", x, axes, keep_dims);
}
Array reduce_prod_grad(const Array& dy, const Array& x, const std::vector<int>& axes,
                       bool keep_dims) {
  return record(
      "reduce_prod_grad", {dy, x},
      {{"axes", normal_axes("reduce_prod_grad", axes, x.rank())}, {"keep_dims", keep_dims}});
}
// log sum e^x = m + log sum e^(x - m) for any m; with the largest element nothing overflows. An
// infinite m would make infinity minus infinity, so 0 stands for it. The result does not depend on
// m, hence no gradient goes through it.
Array reduce_logsumexp(const Array& x, const std::vector<int>& axes, bool keep_dims) {
  Array largest = reduce_max(x, axes, true);
  Array shift = stop_gradient(where(is_finite(largest), largest, 0.0f));
  Array rest = log(reduce_sum(exp(x - shift), axes, keep_dims));
  // that sum runs over axes of size 1: it drops them
  return rest + (keep_dims ? shift : reduce_sum(shift, axes));
}
Array argmax(const Array& x, int axis) {
  return record("argmax", {x}, {{"axis", std::int64_t{normalize_axis("argmax", axis, x.rank())}}});
}

}  // namespace cairn
