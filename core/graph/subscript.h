// Which elements of an array: subscripts as Python and the reference have them.
//
//   x[1:4, 0]      subscript(x, {Slice{1, 4}, 0})
//   x[::-2]        subscript(x, {Slice{.step = -2}})
//   x[..., -1]     subscript(x, {kEllipsis, -1})
//   x[None, mask]  subscript(x, {kNewAxis, mask})      with a Tensor of bools
//
// The same subscripts select of a Variable: Variable::at(). They are values of the program, not
// Arrays: what they select, and so the result's shape, is known when the function is recorded.
//   Thread  any.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/graph/array.h"
#include "core/tensor/tensor.h"

namespace cairn {

// start:stop:step of Python: bounds below 0 count from the end, and bounds beyond it are cut off.
struct Slice {
  std::optional<std::int64_t> start = {}, stop = {}, step = {};
};

struct NewAxis {};
struct Ellipsis {};
inline constexpr NewAxis kNewAxis;
inline constexpr Ellipsis kEllipsis;

// One entry between the brackets: a number, which takes one element of its axis and removes the
// axis; a Slice; a new axis of 1; `...`, for as many axes as are left; or a mask, a Tensor of bools
// of shape [the axis's size], which takes the elements where it is true.
class Subscript {
 public:
  template <std::integral T>
  requires(!std::same_as<T, bool>) Subscript(T index)  // NOLINT(google-explicit-constructor)
      : what_(static_cast<std::int64_t>(index)) {}
  Subscript(Slice slice) : what_(slice) {}            // NOLINT(google-explicit-constructor)
  Subscript(NewAxis axis) : what_(axis) {}            // NOLINT(google-explicit-constructor)
  Subscript(Ellipsis rest) : what_(rest) {}           // NOLINT(google-explicit-constructor)
  Subscript(Tensor mask) : what_(std::move(mask)) {}  // NOLINT(google-explicit-constructor)
  template <std::same_as<Array> T>
  Subscript(T) = delete;  // an Array has no value yet; ask for elements by gather()

  using What = std::variant<std::int64_t, Slice, NewAxis, Ellipsis, Tensor>;
  const What& what() const { return what_; }

 private:
  What what_;
};

// Subscripts applied to a shape: for each of its axes the elements taken, in the result's order.
struct AxisSelection {
  std::int64_t start = 0, step = 1, count = 0;
  std::optional<std::vector<std::int64_t>> listed = {};  // instead: a mask's
  bool all = false;                                      // of the axis, in order

  std::vector<std::int64_t> elements() const;
};
struct Selection {
  std::vector<AxisSelection> axes;
  Shape shape;  // of the result
};

// InvalidArgument naming shape and subscript: more subscripts than axes, two ellipses, a number out
// of bounds, a step of 0, a mask of another type or size, or something else than all of an axis
// whose size is unknown.
Selection select(const Shape& shape, const std::vector<Subscript>& subscripts);

// The elements of `x`, shaped [those that each subscript takes..., the axes without one...].
// Gradients flow to what was taken.
//   Errors  those of select().   Cost  one copy for each axis that is not taken whole.
Array subscript(const Array& x, const std::vector<Subscript>& subscripts);

}  // namespace cairn
