// Operations that change how elements are arranged, not the elements.
#include <algorithm>

#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using Dims = std::vector<std::int64_t>;
using infer::OpTypes;

// The product of the known dimensions, and how many are unknown.
struct Extent {
  std::int64_t known = 1;
  int unknown = 0;
};
Extent extent(const Dims& dims) {
  Extent of;
  for (std::int64_t d : dims) {
    if (infer::unknown(d))
      ++of.unknown;
    else if (d != 0 && of.known > infer::kElementsMax / d)
      infer::fail("the shape is too large");
    else
      of.known *= d;
  }
  return of;
}

// At most one dimension may be -1 and follows from the others, as in NumPy.
OpTypes infer_reshape(const OpInputs& in) {
  Dims dims = in.attributes.get<Dims>("shape");
  for (std::int64_t d : dims)
    if (d < Shape::kUnknown) infer::fail("a dimension of ", d);
  Extent from = extent(in.types[0].shape.dims()), to = extent(dims);
  if (to.unknown > 1)
    infer::fail("at most one dimension of ", Shape(dims).to_string(), " may be -1");
  bool fits = from.unknown > 0 || (to.unknown == 0 ? to.known == from.known
                                   : to.known == 0 ? from.known == 0
                                                   : from.known % to.known == 0);
  if (!fits) infer::fail("its elements do not fill the shape ", Shape(dims).to_string());
  if (from.unknown == 0 && to.unknown == 1)
    *std::find(dims.begin(), dims.end(), Shape::kUnknown) =
        to.known == 0 ? 0 : from.known / to.known;
  return {{in.types[0].dtype, Shape(std::move(dims))}};
}

// Two unknown sizes are compared only when the operation runs.
OpTypes infer_reshape_like(const OpInputs& in) {
  const Shape &from = in.types[0].shape, &to = in.types[1].shape;
  if (from.known() && to.known() && extent(from.dims()).known != extent(to.dims()).known)
    infer::fail("the numbers of elements differ");
  return {{in.types[0].dtype, to}};
}

// Only the shape of the second input counts, never its values.
OpTypes infer_broadcast_like(const OpInputs& in) {
  infer::want_fixed_size(in, 0);
  if (!infer::stretches_to(in.types[0].shape, in.types[1].shape))
    infer::fail("the first shape does not broadcast to the second");
  return {{in.types[0].dtype, in.types[1].shape}};
}

// The converse of broadcasting: axes that were stretched or added are summed.
OpTypes infer_sum_to_like(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kArithmetic);
  if (!infer::stretches_to(in.types[1].shape, in.types[0].shape))
    infer::fail("the second shape does not broadcast to the first");
  return {{in.types[0].dtype, in.types[1].shape}};
}

// Axis i of the result is axis permutation[i] of the input, as in NumPy.
OpTypes infer_transpose(const OpInputs& in) {
  infer::want_fixed_size(in, 0);
  const Dims& permutation = in.attributes.get<Dims>("permutation");
  const Shape& shape = in.types[0].shape;
  Dims sorted = permutation, dims;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<std::int64_t>(i))
      infer::fail("the permutation does not name each axis once");
  if (permutation.size() != shape.dims().size())
    infer::fail("a permutation of ", permutation.size(), " axes for rank ", shape.rank());
  for (std::int64_t axis : permutation) dims.push_back(shape[static_cast<int>(axis)]);
  return {{in.types[0].dtype, Shape(std::move(dims))}};
}

OpTypes infer_numeric_like(const OpInputs& in) {
  infer::want_fixed_size(in, 0);
  return {in.types[0]};
}
OpTypes infer_dim_size(const OpInputs& in) {
  infer::want_axis(in, in.types[0].shape.rank());
  return {{DType::kInt64, Shape{}}};
}
OpTypes infer_element_count(const OpInputs&) { return {{DType::kInt64, Shape{}}}; }

const Array& input(const Array& y) { return y.node()->inputs[0]; }

using Arrays = std::vector<Array>;
// Back to the input's shape: by that shape where it has at most one unknown dimension, and
// otherwise by the input itself. A dimension of 0 would leave an unknown one undetermined.
Arrays grad_reshape(const Array& y, const Array& dy) {
  const Shape& shape = input(y).shape();
  if (extent(shape.dims()).unknown <= 1 &&
      std::find(shape.dims().begin(), shape.dims().end(), 0) == shape.dims().end())
    return {reshape(dy, shape)};
  return {reshape_like(dy, input(y))};
}
Arrays grad_reshape_like(const Array& y, const Array& dy) {
  return {reshape_like(dy, input(y)), Array()};
}
// Stretching and summing are each other's transpose, and so each other's gradient.
Arrays grad_broadcast_like(const Array& y, const Array& dy) {
  return {sum_to_like(dy, input(y)), Array()};
}
Arrays grad_sum_to_like(const Array& y, const Array& dy) {
  return {broadcast_like(dy, input(y)), Array()};
}
// The inverse permutation takes each axis back.
Arrays grad_transpose(const Array& y, const Array& dy) {
  const Dims& permutation = y.node()->attributes.get<Dims>("permutation");
  std::vector<int> inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<int>(i);
  return {transpose(dy, inverse)};
}

const OpDef kShapeOps[] = {
    {"reshape", 1, 1, "shape", infer_reshape, grad_reshape, OpFlags::kAlias},
    {"reshape_like", 2, 2, "", infer_reshape_like, grad_reshape_like, OpFlags::kAlias, shape_of(1)},
    {"broadcast_like", 2, 2, "", infer_broadcast_like, grad_broadcast_like, OpFlags::kBroadcast,
     shape_of(1)},
    {"sum_to_like", 2, 2, "", infer_sum_to_like, grad_sum_to_like, OpFlags::kSumToShape,
     shape_of(1)},
    {"transpose", 1, 1, "permutation", infer_transpose, grad_transpose},
    {"zeros_like", 1, 1, "", infer_numeric_like, nullptr, OpFlags::kNone, shape_of(0)},
    {"ones_like", 1, 1, "", infer_numeric_like, nullptr, OpFlags::kNone, shape_of(0)},
    {"dim_size", 1, 1, "axis", infer_dim_size, nullptr, OpFlags::kNone, shape_of(0)},
    {"element_count", 1, 1, "", infer_element_count, nullptr, OpFlags::kNone, shape_of(0)},
};

}  // namespace

std::span<const OpDef> shape_ops() { return kShapeOps; }

Array reshape(const Array& x, const Shape& shape) {
  return record("reshape", {x}, {{"shape", shape.dims()}});
}
Array reshape_like(const Array& x, const Array& like) { return record("reshape_like", {x, like}); }
Array broadcast_like(const Array& x, const Array& like) {
  return record("broadcast_like", {x, like});
}
Array sum_to_like(const Array& x, const Array& like) { return record("sum_to_like", {x, like}); }
Array zeros_like(const Array& x) { return record("zeros_like", {x}); }
Array ones_like(const Array& x) { return record("ones_like", {x}); }
Array element_count(const Array& x) { return record("element_count", {x}); }
Array dim_size(const Array& x, int axis) {
  return record("dim_size", {x},
                {{"axis", std::int64_t{normalize_axis("dim_size", axis, x.rank())}}});
}

Array transpose(const Array& x, const std::vector<int>& permutation) {
  Dims normal;
  for (int axis : permutation) normal.push_back(normalize_axis("transpose", axis, x.rank()));
  return record("transpose", {x}, {{"permutation", std::move(normal)}});
}

// An axis of size 1 changes no element's place, so a reshape will do; -1 puts it last, as in NumPy.
Array expand_dims(const Array& x, int axis) {
  Dims dims = x.shape().dims();
  dims.insert(dims.begin() + normalize_axis("expand_dims", axis, x.rank() + 1), 1);
  return reshape(x, Shape(std::move(dims)));
}

// An unknown dimension is let through; that it is 1 is found out when the reshape runs.
Array squeeze(const Array& x, int axis) {
  Dims dims = x.shape().dims();
  auto place = dims.begin() + normalize_axis("squeeze", axis, x.rank());
  if (!infer::unknown(*place) && *place != 1)
    throw InvalidArgumentError(
        str("squeeze: axis ", axis, " of ", x.type().to_string(), " is not 1"));
  dims.erase(place);
  return reshape(x, Shape(std::move(dims)));
}

}  // namespace cairn
