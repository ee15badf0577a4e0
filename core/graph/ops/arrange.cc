// Running sums, padding, and what is composed of gathers by positions.
#include <algorithm>
#include <numeric>

#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;
using Arrays = std::vector<Array>;

OpTypes infer_cumsum(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kArithmetic);
  infer::want_axis(in, in.types[0].shape.rank());
  for (const char* name : {"exclusive", "reverse"}) (void)in.attributes.get<bool>(name);
  return {in.types[0]};
}

// The padding alone is bounded here, since no input as large stands behind it.
OpTypes infer_pad(const OpInputs& in) {
  infer::want_fixed_size(in, 0);
  infer::want_dtype(in, 1, {in.types[0].dtype});
  infer::want_rank(in, 1, 0);
  const Shape& shape = in.types[0].shape;
  const int axis = infer::want_axis(in, shape.rank());
  const std::int64_t before = in.attributes.get<std::int64_t>("before"),
                     after = in.attributes.get<std::int64_t>("after");
  for (std::int64_t one : {before, after})
    if (one < -infer::kElementsMax || one > infer::kElementsMax)
      infer::fail("a padding of ", one, " elements");
  const std::int64_t added = std::max<std::int64_t>(before, 0) + std::max<std::int64_t>(after, 0);
  if (added > 0) infer::check_made_size(shape.with_dim(axis, added));
  if (infer::unknown(shape[axis])) return {in.types[0]};
  const std::int64_t made = shape[axis] + before + after;
  if (made < 0)
    infer::fail("paddings of ", before, " and ", after, " cut more than the ", shape[axis],
                " elements of axis ", axis);
  return {{in.types[0].dtype, shape.with_dim(axis, made)}};
}

// x_i is part of the sums at i and behind it, so its gradient is the sum of theirs.
Arrays grad_cumsum(const Array& y, const Array& dy) {
  const Attributes& told = y.node()->attributes;
  if (y.dtype() != DType::kFloat32) return {};
  return {cumsum(dy, static_cast<int>(told.get<std::int64_t>("axis")),
                 {told.get<bool>("exclusive"), !told.get<bool>("reverse")})};
}

// The gradient loses the padding, and has zeros in place of elements that were cut off.
Arrays grad_pad(const Array& y, const Array& dy) {
  const Attributes& told = y.node()->attributes;
  if (y.dtype() != DType::kFloat32) return {};
  return {pad_axis(dy, static_cast<int>(told.get<std::int64_t>("axis")),
                   {-told.get<std::int64_t>("before"), -told.get<std::int64_t>("after")}, 0.0f),
          Array()};
}

const OpDef kArrangeOps[] = {
    {"cumsum", 1, 1, "axis exclusive reverse", infer_cumsum, grad_cumsum},
    {"pad", 2, 2, "axis before after", infer_pad, grad_pad},
};

// Casts bools to numbers, which max and min can compare. Other dtypes are refused.
Array bools_as_numbers(std::string_view op, const Array& x) {
  if (x.dtype() != DType::kBool)
    throw InvalidArgumentError(str(op, ": ", x.type().to_string(), " is no bool (see cast)"));
  return cast(x, DType::kInt32);
}

void check_repeats(std::string_view op, std::int64_t times) {
  if (times < 0 || times > infer::kMadeElementsMax)
    throw InvalidArgumentError(str(op, ": an axis ", times, " times"));
}

}  // namespace

std::span<const OpDef> arrange_ops() { return kArrangeOps; }

Array cumsum(const Array& x, int axis, const CumsumOptions& options) {
  return record("cumsum", {x},
                {{"axis", std::int64_t{normalize_axis("cumsum", axis, x.rank())}},
                 {"exclusive", options.exclusive},
                 {"reverse", options.reverse}});
}

// In this order, so that an element beyond both bounds, where they cross, becomes `low`, as in the
// reference.
Array clip_by_value(const Array& x, const Array& low, const Array& high) {
  return maximum(minimum(x, high), low);
}

Array logical_xor(const Array& a, const Array& b) {
  for (const Array* one : {&a, &b})
    if (one->dtype() != DType::kBool)
      throw InvalidArgumentError(str("logical_xor: ", one->type().to_string(), " is no bool"));
  return not_equal(a, b);
}
// Over no elements, max is the least number, so any is false, and min the greatest: all is true.
Array reduce_any(const Array& x, const std::vector<int>& axes, bool keep_dims) {
  return greater(reduce_max(bools_as_numbers("reduce_any", x), axes, keep_dims), 0);
}
Array reduce_all(const Array& x, const std::vector<int>& axes, bool keep_dims) {
  return greater(reduce_min(bools_as_numbers("reduce_all", x), axes, keep_dims), 0);
}

Array pad_axis(const Array& x, int axis, const AxisPadding& padding, const Array& value) {
  return record("pad", {x, value.beside(x.dtype())},
                {{"axis", std::int64_t{normalize_axis("pad", axis, x.rank())}},
                 {"before", padding.before},
                 {"after", padding.after}});
}
Array pad(const Array& x, const std::vector<AxisPadding>& paddings, const Array& value) {
  if (static_cast<int>(paddings.size()) != x.rank())
    throw InvalidArgumentError(
        str("pad: ", paddings.size(), " paddings for the axes of ", x.type().to_string()));
  Array padded = x;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const AxisPadding& of = paddings[static_cast<std::size_t>(axis)];
    if (of.before != 0 || of.after != 0) padded = pad_axis(padded, axis, of, value);
  }
  return padded;
}

Array range(std::int64_t n) {
  if (n < 0 || n > infer::kMadeElementsMax)
    throw InvalidArgumentError(str("range: ", n, " numbers"));
  Tensor numbers(DType::kInt64, Shape{n});
  std::iota(numbers.mutable_values<std::int64_t>().begin(),
            numbers.mutable_values<std::int64_t>().end(), std::int64_t{0});
  return Array(std::move(numbers));
}

// If the axis has an unknown size, the positions are a running sum of ones. There are as many ones
// as elements remain when the other axes are reduced. Nothing is reduced when a plan runs: only the
// shape of `each` is used, so the plan leaves the reduction out.
Array positions_along(const Array& x, int axis) {
  const int normal = normalize_axis("positions_along", axis, x.rank());
  if (!infer::unknown(x.shape()[normal])) return range(x.shape()[normal]);
  std::vector<int> others;
  for (int i = 0; i < x.rank(); ++i)
    if (i != normal) others.push_back(i);
  const Array numbers = cast(x, DType::kInt64);
  const Array each = others.empty() ? numbers : reduce_max(numbers, others);
  return cumsum(ones_like(each), 0, {.exclusive = true});
}

Array tile(const Array& x, const std::vector<std::int64_t>& multiples) {
  if (static_cast<int>(multiples.size()) != x.rank())
    throw InvalidArgumentError(
        str("tile: ", multiples.size(), " multiples for the axes of ", x.type().to_string()));
  Array tiled = x;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t times = multiples[static_cast<std::size_t>(axis)];
    check_repeats("tile", times);
    if (times == 1) continue;
    const Array once = expand_dims(positions_along(tiled, axis), 0);
    const Array ids = gather(once, Tensor::zeros(DType::kInt32, {times}));
    tiled = gather(tiled, reshape(ids, {Shape::kUnknown}), axis);
  }
  return tiled;
}

Array repeat_elements(const Array& x, std::int64_t times, int axis) {
  check_repeats("repeat_elements", times);
  const Array once = expand_dims(positions_along(x, axis), 1);
  const Array ids = gather(once, Tensor::zeros(DType::kInt32, {times}), 1);
  return gather(x, reshape(ids, {Shape::kUnknown}), axis);
}

Array reverse(const Array& x, int axis) {
  const Array positions = positions_along(x, axis);
  return gather(x, reduce_max(positions) - positions, axis);
}

}  // namespace cairn
