#include "core/graph/infer.h"

#include <algorithm>

#include "core/graph/ops.h"

namespace cairn::infer {
namespace {

std::string dtype_list(DTypes allowed) {
  std::string text;
  for (DType dtype : allowed) text += (text.empty() ? "" : " or ") + std::string(dtype_name(dtype));
  return text;
}

// NumPy's rule of broadcasting aligns shapes at their last axes: dimension `axis` of the result, as
// `shape` has it, and 1 where the shape is shorter.
std::int64_t aligned(const Shape& shape, int rank, int axis) {
  int own = axis - (rank - shape.rank());
  return own < 0 ? 1 : shape[own];
}

// A dimension of 1 stretches to the other one. An unknown dimension beside a known one is taken for
// equal to it, which is verified when sizes are known (Binder::check_unknown_dims for two unknown
// ones).
std::int64_t broadcast_dim(std::int64_t a, std::int64_t b) {
  if (a == 1) return b;
  if (b == 1) return a;
  if (!dims_agree(a, b)) fail("the shapes do not broadcast: ", a, " against ", b);
  return merge_dims(a, b);
}

}  // namespace

void want_dtype(const OpInputs& in, int i, DTypes allowed) {
  const bool fits = std::find(allowed.begin(), allowed.end(), input(in, i).dtype) != allowed.end();
  if (!fits && input(in, i).dtype == DType::kFloat64)
    fail("input ", i, " is float64, in which nothing is computed; cast it to float32 first");
  if (!fits)
    fail("input ", i, " is ", dtype_name(input(in, i).dtype), "; ", dtype_list(allowed),
         " is wanted (see cast)");
}

void want_same_dtype(const OpInputs& in) {
  for (const TensorType& type : in.types)
    if (type.dtype != in.types[0].dtype)
      fail("the dtypes differ: ", dtype_name(in.types[0].dtype), " and ", dtype_name(type.dtype),
           " (see cast)");
}

void want_fixed_size(const OpInputs& in, int i) {
  if (input(in, i).dtype == DType::kString)
    fail("input ", i, " is string; a dtype of fixed size is wanted");
}

void want_rank(const OpInputs& in, int i, int rank) {
  if (input(in, i).shape.rank() != rank)
    fail("input ", i, " has rank ", input(in, i).shape.rank(), "; ", rank, " is wanted");
}

void want_rank_at_least(const OpInputs& in, int i, int rank) {
  if (input(in, i).shape.rank() < rank)
    fail("input ", i, " has rank ", input(in, i).shape.rank(), "; at least ", rank, " is wanted");
}

// Recording has made the axis non-negative, so a graph in which one is negative was made otherwise.
int want_axis(const OpInputs& in, int rank, std::string_view name) {
  std::int64_t axis = in.attributes.get<std::int64_t>(name);
  if (axis < 0 || axis >= rank) fail("axis ", axis, " of a value of rank ", rank);
  return static_cast<int>(axis);
}

bool shapes_agree(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (!dims_agree(a[i], b[i])) return false;
  return true;
}

Shape merge_shapes(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < a.rank(); ++i) dims.push_back(merge_dims(a[i], b[i]));
  return Shape(std::move(dims));
}

Shape broadcast(const Shape& a, const Shape& b) {
  int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> dims;
  for (int i = 0; i < rank; ++i)
    dims.push_back(broadcast_dim(aligned(a, rank, i), aligned(b, rank, i)));
  return Shape(std::move(dims));
}

// This is broadcasting with one side fixed: `to` keeps its shape.
bool stretches_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 0; i < to.rank(); ++i) {
    std::int64_t d = aligned(from, to.rank(), i);
    if (d != 1 && !dims_agree(d, to[i])) return false;
  }
  return true;
}

// Divides instead of multiplying, so that no product overflows. Unknown dimensions count as 1.
void check_size(const Shape& shape) {
  if (shape.rank() > kRankMax) fail("a value of rank ", shape.rank(), "; at most ", kRankMax);
  std::int64_t elements = 1;
  for (std::int64_t d : shape.dims()) {
    if (d < Shape::kUnknown) fail("a dimension of ", d, " in ", shape.to_string());
    if (d > 0 && elements > kElementsMax / d)
      fail("the shape ", shape.to_string(), " is too large");
    if (d > 0) elements *= d;
  }
}

// Such an operation names its size by attributes alone, so a graph of some bytes could ask for any
// amount of memory.
void check_made_size(const Shape& shape) {
  check_size(shape);
  std::int64_t elements = 1;
  for (std::int64_t d : shape.dims())
    if (d > 0) elements *= d;
  if (elements > kMadeElementsMax)
    fail("a value of ", shape.to_string(), " out of nothing; at most ", kMadeElementsMax,
         " elements");
}

std::vector<TensorType> same_as_first(const OpInputs& in) { return {in.types[0]}; }

}  // namespace cairn::infer

namespace cairn {

// Negative axes count from the end, as in NumPy.
int normalize_axis(std::string_view op, int axis, int rank) {
  int normal = axis < 0 ? axis + rank : axis;
  if (normal < 0 || normal >= rank)
    throw InvalidArgumentError(str(op, ": axis ", axis, " of a value of rank ", rank));
  return normal;
}

// The derivative of stretching is summing over the axes that were stretched.
Array unbroadcast(const Array& gradient, const Array& like) {
  return same_when_run(gradient, like) ? gradient : sum_to_like(gradient, like);
}

Array stretch(const Array& x, const Array& like) {
  return same_when_run(x, like) ? x : broadcast_like(x, like);
}

Array float_constant(float value) { return Array(value); }

}  // namespace cairn
