// The vocabulary of type rules and gradients: what the ops_*.cc files share.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/op_def.h"

namespace cairn::infer {

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw InvalidArgumentError(str(parts...));
}

using OpTypes = std::vector<TensorType>;
using DTypes = std::initializer_list<DType>;
inline constexpr DTypes kFloats = {DType::kFloat32};
inline constexpr DTypes kArithmetic = {DType::kFloat32, DType::kInt32, DType::kInt64};
inline constexpr DTypes kIntegers = {DType::kInt32, DType::kInt64};

inline const TensorType& input(const OpInputs& in, int i) {
  return in.types[static_cast<std::size_t>(i)];
}
void want_dtype(const OpInputs& in, int i, DTypes allowed);
void want_same_dtype(const OpInputs& in);
void want_fixed_size(const OpInputs& in, int i);  // any dtype but string
void want_rank(const OpInputs& in, int i, int rank);
void want_rank_at_least(const OpInputs& in, int i, int rank);
// The attribute `axis`, which must be in [0, rank).
int want_axis(const OpInputs& in, int rank, std::string_view name = "axis");

inline constexpr std::int64_t kElementsMax = std::int64_t{1} << 46;  // of any one value
// of a value whose size stands in an attribute
inline constexpr std::int64_t kMadeElementsMax = std::int64_t{1} << 30;
// Each gather adds the ranks of its inputs: unbounded, twenty of them would make a shape of a
// million axes.
inline constexpr int kRankMax = 16;
// InvalidArgument if a value of the shape cannot be meant: its size stays below every overflow.
void check_size(const Shape& shape);
// The same for a value that nothing as large stands behind: a few bytes of a message must not make
// gigabytes.
void check_made_size(const Shape& shape);
inline bool unknown(std::int64_t dim) { return dim == Shape::kUnknown; }
inline bool dims_agree(std::int64_t a, std::int64_t b) {
  return a == b || unknown(a) || unknown(b);
}
bool shapes_agree(const Shape& a, const Shape& b);
// Merges two dimensions that agree: the result is known if either of them is.
inline std::int64_t merge_dims(std::int64_t a, std::int64_t b) { return unknown(a) ? b : a; }
Shape merge_shapes(const Shape& a, const Shape& b);

// NumPy's rule with unknown dimensions: against 1 and against another unknown one an unknown
// dimension stays unknown, against n > 1 it becomes n. Two unknown dimensions never stretch one
// another: when run, they must be equal.
Shape broadcast(const Shape& a, const Shape& b);
// True when a value shaped `from` may be stretched to `to`.
bool stretches_to(const Shape& from, const Shape& to);

// Same type and shape as the first input.
std::vector<TensorType> same_as_first(const OpInputs& in);

}  // namespace cairn::infer

namespace cairn {

// A user's axis, which may be negative, as one in [0, rank). InvalidArgument naming the operation.
int normalize_axis(std::string_view op, int axis, int rank);

// Both shapes are known to be equal when run: equal dimensions, where unknown equals unknown at the
// same axis (see broadcast).
inline bool same_when_run(const Array& a, const Array& b) { return a.shape() == b.shape(); }
// `gradient` summed over what broadcasting stretched, to the shape of `like`.
Array unbroadcast(const Array& gradient, const Array& like);
// `x` stretched to the shape of `like`, at no cost if it has that shape.
Array stretch(const Array& x, const Array& like);
Array float_constant(float value);

}  // namespace cairn
