// The operations on arrays, by the names that C++ has for them (core/graph/ops.h).
#include "core/graph/ops.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "core/graph/function.h"
#include "values.h"

namespace cairn::python {

Combiner combiner_of(const std::string& name) {
  if (name == "sum") return Combiner::kSum;
  if (name == "mean") return Combiner::kMean;
  if (name == "sqrtn") return Combiner::kSqrtn;
  throw InvalidArgumentError(str("combiner is \"sum\", \"mean\" or \"sqrtn\", not \"", name, "\""));
}

namespace {

using Axes = std::optional<std::variant<int, std::vector<int>>>;

std::vector<int> axes_of(const Axes& axes) {
  if (!axes) return {};
  if (const int* one = std::get_if<int>(&*axes)) return {*one};
  return std::get<std::vector<int>>(*axes);
}

void unary(nb::module_& m, const char* name, Array (*op)(const Array&), const char* doc) {
  m.def(
      name, [op](ArrayLike x) { return op(x); }, "x"_a, doc);
}
void binary(nb::module_& m, const char* name, Array (*op)(const Array&, const Array&),
            const char* doc) {
  m.def(
      name, [op](ArrayLike a, ArrayLike b) { return op(a, b); }, "a"_a, "b"_a, doc);
}
void reduction(nb::module_& m, const char* name,
               Array (*op)(const Array&, const std::vector<int>&, bool), const char* doc) {
  m.def(
      name,
      [op](ArrayLike x, const Axes& axis, bool keepdims) { return op(x, axes_of(axis), keepdims); },
      "x"_a, "axis"_a = nb::none(), "keepdims"_a = false, doc);
}

void bind_elementwise(nb::module_& m) {
  unary(m, "neg", neg, "-x.\n\n>>> cairn.neg([1.0]).numpy()\narray([-1.], dtype=float32)");
  unary(m, "abs", abs,
        "The absolute value.\n\n>>> cairn.abs([-1.0]).numpy()\narray([1.], dtype=float32)");
  unary(m, "exp", exp, "e to the x.\n\n>>> cairn.exp(0.0).item()\n1.0");
  unary(m, "expm1", expm1, "exp(x) - 1, precise near 0.\n\n>>> cairn.expm1(0.0).item()\n0.0");
  unary(m, "log", log, "The natural logarithm.\n\n>>> cairn.log(1.0).item()\n0.0");
  unary(m, "log1p", log1p, "log(1 + x), precise near 0.\n\n>>> cairn.log1p(0.0).item()\n0.0");
  unary(m, "sqrt", sqrt, "The square root.\n\n>>> cairn.sqrt(4.0).item()\n2.0");
  unary(m, "rsqrt", rsqrt, "1 / sqrt(x).\n\n>>> cairn.rsqrt(4.0).item()\n0.5");
  unary(m, "square", square, "x * x.\n\n>>> cairn.square(3.0).item()\n9.0");
  unary(m, "reciprocal", reciprocal, "1 / x.\n\n>>> cairn.reciprocal(2.0).item()\n0.5");
  unary(m, "sigmoid", sigmoid, "1 / (1 + exp(-x)).\n\n>>> cairn.sigmoid(0.0).item()\n0.5");
  unary(m, "tanh", tanh, "The hyperbolic tangent.\n\n>>> cairn.tanh(0.0).item()\n0.0");
  unary(m, "relu", relu,
        "max(x, 0).\n\n>>> cairn.relu([-1.0, 2.0]).numpy()\narray([0., 2.], dtype=float32)");
  unary(m, "softplus", softplus,
        "log(1 + exp(x)).\n\n>>> cairn.softplus(0.0).numpy().round(4).item()\n0.6930999755859375");
  unary(m, "sin", sin, "The sine, of radians.\n\n>>> cairn.sin(0.0).item()\n0.0");
  unary(m, "cos", cos, "The cosine, of radians.\n\n>>> cairn.cos(0.0).item()\n1.0");
  unary(m, "erf", erf, "The error function.\n\n>>> cairn.erf(0.0).item()\n0.0");
  unary(m, "erfc", erfc,
        "1 - erf(x), without its loss of digits.\n\n>>> cairn.erfc(0.0).item()\n1.0");
  unary(m, "sign", sign, "-1, 0 or 1.\n\n>>> cairn.sign(-3.0).item()\n-1.0");
  unary(m, "floor", floor, "The next integer below.\n\n>>> cairn.floor(1.5).item()\n1.0");
  unary(m, "ceil", ceil, "The next integer above.\n\n>>> cairn.ceil(1.5).item()\n2.0");
  unary(m, "round", round,
        "The nearest integer; halves go to the even one.\n\n>>> cairn.round(2.5).item()\n2.0");
  unary(m, "is_finite", is_finite,
        "Where x is neither infinite nor NaN.\n\n>>> cairn.is_finite(1.0).item()\nTrue");
  unary(m, "logical_not", logical_not,
        "Where x is False.\n\n>>> cairn.logical_not(True).item()\nFalse");
  unary(m, "stop_gradient", stop_gradient,
        "x, through which no gradient passes.\n\n>>> cairn.stop_gradient(1.0).item()\n1.0");
  m.def(
      "cast", [](ArrayLike x, DTypeLike dtype) { return cast(x, dtype); }, "x"_a, "dtype"_a,
      "The elements as another type.\n\n>>> cairn.cast([1, 2], \"float32\").numpy()\narray([1., "
      "2.], dtype=float32)");
  m.def(
      "check_numerics",
      [](ArrayLike x, const std::string& message) { return check_numerics(x, message); }, "x"_a,
      "message"_a,
      "x; where an element is not finite the step ends with an error that says `message`, and no\n"
      "update that depends on it is made.\n\n>>> cairn.check_numerics(1.0, \"the "
      "loss\").item()\n1.0");
  m.def(
      "after", [](ArrayLike x, ArrayLike done) { return after(x, done); }, "x"_a, "done"_a,
      "x, once `done` has been computed.\n\n>>> cairn.after(1.0, 2.0).item()\n1.0");
  binary(m, "add", add, "a + b.\n\n>>> cairn.add(1.0, 2.0).item()\n3.0");
  binary(m, "sub", sub, "a - b.\n\n>>> cairn.sub(1.0, 2.0).item()\n-1.0");
  binary(m, "mul", mul, "a * b.\n\n>>> cairn.mul(3.0, 2.0).item()\n6.0");
  binary(m, "div", div, "a / b.\n\n>>> cairn.div(1.0, 2.0).item()\n0.5");
  binary(m, "floor_mod", floor_mod,
         "What is left of a / b, with the sign of b.\n\n>>> cairn.floor_mod(-1, 3).item()\n2");
  binary(m, "maximum", maximum, "The larger of two.\n\n>>> cairn.maximum(1.0, 2.0).item()\n2.0");
  binary(m, "minimum", minimum, "The smaller of two.\n\n>>> cairn.minimum(1.0, 2.0).item()\n1.0");
  binary(m, "pow", pow, "a to the b.\n\n>>> cairn.pow(2.0, 3.0).item()\n8.0");
  binary(m, "squared_difference", squared_difference,
         "(a - b) squared.\n\n>>> cairn.squared_difference(1.0, 3.0).item()\n4.0");
  binary(m, "equal", equal, "Where a == b.\n\n>>> cairn.equal(1.0, 1.0).item()\nTrue");
  binary(m, "not_equal", not_equal, "Where a != b.\n\n>>> cairn.not_equal(1.0, 1.0).item()\nFalse");
  binary(m, "less", less, "Where a < b.\n\n>>> cairn.less(1.0, 2.0).item()\nTrue");
  binary(m, "less_equal", less_equal,
         "Where a <= b.\n\n>>> cairn.less_equal(1.0, 1.0).item()\nTrue");
  binary(m, "greater", greater, "Where a > b.\n\n>>> cairn.greater(1.0, 2.0).item()\nFalse");
  binary(m, "greater_equal", greater_equal,
         "Where a >= b.\n\n>>> cairn.greater_equal(1.0, 1.0).item()\nTrue");
  binary(m, "logical_and", logical_and,
         "Where both are True.\n\n>>> cairn.logical_and(True, False).item()\nFalse");
  binary(m, "logical_or", logical_or,
         "Where any is True.\n\n>>> cairn.logical_or(True, False).item()\nTrue");
  binary(m, "logical_xor", logical_xor,
         "Where exactly one is True.\n\n>>> cairn.logical_xor(True, False).item()\nTrue");
  m.def(
      "where", [](ArrayLike condition, ArrayLike a, ArrayLike b) { return where(condition, a, b); },
      "condition"_a, "a"_a, "b"_a,
      "a where the condition holds, b elsewhere.\n\n>>> cairn.where([True, False], 1.0, "
      "2.0).numpy()\narray([1., 2.], dtype=float32)");
  m.def(
      "clip_by_value",
      [](ArrayLike x, ArrayLike low, ArrayLike high) { return clip_by_value(x, low, high); }, "x"_a,
      "low"_a, "high"_a,
      "x, no less than low and no more than high.\n\n>>> cairn.clip_by_value(5.0, 0.0, "
      "1.0).item()\n1.0");
  m.def(
      "elu", [](ArrayLike x, float alpha) { return elu(x, alpha); }, "x"_a, "alpha"_a = 1.0f,
      "x, or alpha (e^x - 1) below 0.\n\n>>> cairn.elu(1.0).item()\n1.0");
  unary(m, "selu", selu,
        "The self-normalising activation (arXiv:1706.02515).\n\n>>> cairn.selu(0.0).item()\n0.0");
  m.def(
      "leaky_relu", [](ArrayLike x, float alpha) { return leaky_relu(x, alpha); }, "x"_a,
      "alpha"_a = 0.2f, "x, or alpha x below 0.\n\n>>> cairn.leaky_relu(1.0).item()\n1.0");
  unary(m, "relu6", relu6, "min(max(x, 0), 6).\n\n>>> cairn.relu6(9.0).item()\n6.0");
  unary(m, "swish", swish, "x sigmoid(x).\n\n>>> cairn.swish(0.0).item()\n0.0");
  unary(m, "gelu", gelu,
        "x times the share of a normal distribution below x.\n\n>>> cairn.gelu(0.0).item()\n0.0");
  unary(m, "gelu_approximate", gelu_approximate,
        "gelu() approximated by tanh.\n\n>>> cairn.gelu_approximate(0.0).item()\n0.0");
}

void bind_reductions(nb::module_& m) {
  reduction(m, "reduce_sum", reduce_sum,
            "The sum over axes; None: over all.\n\n>>> cairn.reduce_sum([[1.0, 2.0]], "
            "axis=1).numpy()\narray([3.], dtype=float32)");
  reduction(m, "reduce_mean", reduce_mean,
            "The mean over axes; None: over all.\n\n>>> cairn.reduce_mean([1.0, 3.0]).item()\n2.0");
  reduction(
      m, "reduce_max", reduce_max,
      "The largest over axes; None: over all.\n\n>>> cairn.reduce_max([1.0, 3.0]).item()\n3.0");
  reduction(
      m, "reduce_min", reduce_min,
      "The smallest over axes; None: over all.\n\n>>> cairn.reduce_min([1.0, 3.0]).item()\n1.0");
  reduction(
      m, "reduce_prod", reduce_prod,
      "The product over axes; None: over all.\n\n>>> cairn.reduce_prod([2.0, 3.0]).item()\n6.0");
  reduction(m, "reduce_logsumexp", reduce_logsumexp,
            "log(sum(exp(x))) over axes; None: over all.\n\n>>> "
            "cairn.reduce_logsumexp([0.0]).item()\n0.0");
  reduction(m, "reduce_any", reduce_any,
            "Whether any is True, over axes; None: over all.\n\n>>> cairn.reduce_any([True, "
            "False]).item()\nTrue");
  reduction(m, "reduce_all", reduce_all,
            "Whether all are True, over axes; None: over all.\n\n>>> cairn.reduce_all([True, "
            "False]).item()\nFalse");
  unary(m, "sum", sum, "The sum of all elements.\n\n>>> cairn.sum([1.0, 3.0]).item()\n4.0");
  unary(m, "mean", mean, "The mean of all elements.\n\n>>> cairn.mean([1.0, 3.0]).item()\n2.0");
  m.def(
      "argmax", [](ArrayLike x, int axis) { return argmax(x, axis); }, "x"_a, "axis"_a,
      "Where along the axis the largest stands.\n\n>>> cairn.argmax([1.0, 3.0], axis=0).item()\n1");
  m.def(
      "argmin", [](ArrayLike x, int axis) { return argmin(x, axis); }, "x"_a, "axis"_a,
      "Where along the axis the smallest stands.\n\n>>> cairn.argmin([1.0, 3.0], "
      "axis=0).item()\n0");
  m.def(
      "cumsum",
      [](ArrayLike x, int axis, bool exclusive, bool reverse) {
        return cumsum(x, axis, {.exclusive = exclusive, .reverse = reverse});
      },
      "x"_a, "axis"_a, "exclusive"_a = false, "reverse"_a = false,
      "Sums of what comes before and at each element.\n\n>>> cairn.cumsum([1.0, 2.0], "
      "axis=0).numpy()\narray([1., 3.], dtype=float32)");
  m.def(
      "top_k",
      [](ArrayLike x, std::int64_t k) {
        const TopK best = top_k(x, k);
        return std::pair(best.values, best.indices);
      },
      "x"_a, "k"_a,
      "The k largest along the last axis, the largest first, and where they stood.\n\n>>> values, "
      "places = cairn.top_k([1.0, 3.0, 2.0], k=2)\n>>> places.numpy()\narray([1, 2])");
  m.def(
      "in_top_k",
      [](ArrayLike predictions, ArrayLike targets, std::int64_t k) {
        return in_top_k(predictions, targets, k);
      },
      "predictions"_a, "targets"_a, "k"_a,
      "Whether each target is among its row's k largest.\n\n>>> cairn.in_top_k([[0.1, 0.9]], [1], "
      "k=1).numpy()\narray([ True])");
}

void bind_shapes(nb::module_& m) {
  m.def(
      "matmul",
      [](ArrayLike a, ArrayLike b, bool transpose_a, bool transpose_b) {
        return matmul(a, b, transpose_a, transpose_b);
      },
      "a"_a, "b"_a, "transpose_a"_a = false, "transpose_b"_a = false,
      "[m, k] times [k, n].\n\n>>> cairn.matmul([[2.0]], [[3.0]]).numpy()\narray([[6.]], "
      "dtype=float32)");
  m.def(
      "batch_matmul",
      [](ArrayLike a, ArrayLike b, bool transpose_a, bool transpose_b) {
        return batch_matmul(a, b, transpose_a, transpose_b);
      },
      "a"_a, "b"_a, "transpose_a"_a = false, "transpose_b"_a = false,
      "[batch, m, k] times [batch, k, n].\n\n>>> cairn.batch_matmul([[[2.0]]], "
      "[[[3.0]]]).shape\n(1, 1, 1)");
  m.def(
      "reshape", [](ArrayLike x, ShapeLike shape) { return reshape(x, shape); }, "x"_a, "shape"_a,
      "The same elements under another shape; one size may be -1.\n\n>>> cairn.reshape([1.0, 2.0], "
      "(2, 1)).shape\n(2, 1)");
  m.def(
      "reshape_like", [](ArrayLike x, ArrayLike like) { return reshape_like(x, like); }, "x"_a,
      "like"_a,
      "The same elements in the shape of another.\n\n>>> cairn.reshape_like([1.0, 2.0], [[0.0], "
      "[0.0]]).shape\n(2, 1)");
  m.def(
      "broadcast_like", [](ArrayLike x, ArrayLike like) { return broadcast_like(x, like); }, "x"_a,
      "like"_a,
      "x, repeated to the shape of another.\n\n>>> cairn.broadcast_like(1.0, [0.0, "
      "0.0]).numpy()\narray([1., 1.], dtype=float32)");
  m.def(
      "transpose",
      [](ArrayLike x, std::optional<std::vector<int>> permutation) {
        const Array plain = x;
        if (!permutation) {
          permutation.emplace();
          for (int axis = plain.rank(); axis-- > 0;) permutation->push_back(axis);
        }
        return transpose(plain, *permutation);
      },
      "x"_a, "permutation"_a = nb::none(),
      "The axes in another order; None: reversed.\n\n>>> cairn.transpose([[1.0, 2.0]]).shape\n(2, "
      "1)");
  m.def(
      "expand_dims", [](ArrayLike x, int axis) { return expand_dims(x, axis); }, "x"_a, "axis"_a,
      "A new axis of size 1.\n\n>>> cairn.expand_dims([1.0], 0).shape\n(1, 1)");
  m.def(
      "squeeze", [](ArrayLike x, int axis) { return squeeze(x, axis); }, "x"_a, "axis"_a,
      "Without that axis, whose size is 1.\n\n>>> cairn.squeeze([[1.0]], 0).shape\n(1,)");
  m.def(
      "concat", [](ArrayList parts, int axis) { return concat(parts, axis); }, "parts"_a, "axis"_a,
      "Arrays behind one another along an axis.\n\n>>> cairn.concat([[1.0], [2.0]], "
      "0).numpy()\narray([1., 2.], dtype=float32)");
  m.def(
      "stack", [](ArrayList parts, int axis) { return stack(parts, axis); }, "parts"_a,
      "axis"_a = 0,
      "Arrays of one shape along a new axis.\n\n>>> cairn.stack([1.0, 2.0]).numpy()\narray([1., "
      "2.], dtype=float32)");
  m.def(
      "split",
      [](ArrayLike x, const std::variant<int, std::vector<std::int64_t>>& pieces, int axis) {
        if (const int* count = std::get_if<int>(&pieces)) return split(x, *count, axis);
        return split(x, std::get<std::vector<std::int64_t>>(pieces), axis);
      },
      "x"_a, "pieces"_a, "axis"_a = 0,
      "So many equal pieces along an axis, or pieces of these sizes.\n\n>>> [each.shape for each "
      "in cairn.split([1.0, 2.0], 2)]\n[(1,), (1,)]");
  m.def(
      "slice",
      [](ArrayLike x, int axis, std::int64_t begin, std::int64_t size) {
        return slice(x, axis, begin, size);
      },
      "x"_a, "axis"_a, "begin"_a, "size"_a = -1,
      "Elements from `begin` on, along one axis; size -1: to its end.\n\n>>> cairn.slice([1.0, "
      "2.0], 0, 1).numpy()\narray([2.], dtype=float32)");
  unary(m, "zeros_like", zeros_like,
        "Zeros of that shape and type.\n\n>>> cairn.zeros_like([1.0]).numpy()\narray([0.], "
        "dtype=float32)");
  unary(m, "ones_like", ones_like,
        "Ones of that shape and type.\n\n>>> cairn.ones_like([2.0]).numpy()\narray([1.], "
        "dtype=float32)");
  m.def(
      "dim_size", [](ArrayLike x, int axis) { return dim_size(x, axis); }, "x"_a, "axis"_a,
      "The size of an axis, as an int64 that is known when it runs.\n\n>>> cairn.dim_size([1.0, "
      "2.0], 0).item()\n2");
  unary(
      m, "element_count", element_count,
      "How many elements there are, as an int64.\n\n>>> cairn.element_count([1.0, 2.0]).item()\n2");
  m.def(
      "pad",
      [](ArrayLike x, const std::vector<std::pair<std::int64_t, std::int64_t>>& paddings,
         ArrayLike value) {
        std::vector<AxisPadding> all;
        for (const auto& [before, behind] : paddings) all.push_back({before, behind});
        return pad(x, all, value);
      },
      "x"_a, "paddings"_a, "value"_a = 0.0,
      "More elements before and behind, for each axis.\n\n>>> cairn.pad([1.0], [(0, "
      "1)]).numpy()\narray([1., 0.], dtype=float32)");
  m.def(
      "tile",
      [](ArrayLike x, const std::vector<std::int64_t>& multiples) { return tile(x, multiples); },
      "x"_a, "multiples"_a,
      "The whole array again and again, along each axis.\n\n>>> cairn.tile([1.0], "
      "[2]).numpy()\narray([1., 1.], dtype=float32)");
  m.def(
      "repeat_elements",
      [](ArrayLike x, std::int64_t times, int axis) { return repeat_elements(x, times, axis); },
      "x"_a, "times"_a, "axis"_a = 0,
      "Each element several times, along an axis.\n\n>>> cairn.repeat_elements([1, 2], "
      "2).numpy()\narray([1, 1, 2, 2], dtype=int32)");
  m.def(
      "reverse", [](ArrayLike x, int axis) { return reverse(x, axis); }, "x"_a, "axis"_a = 0,
      "The other way round along an axis.\n\n>>> cairn.reverse([1.0, 2.0]).numpy()\narray([2., "
      "1.], dtype=float32)");
  m.def(
      "range", [](std::int64_t n) { return range(n); }, "n"_a,
      "0, 1, ... n - 1, as int64.\n\n>>> cairn.range(3).numpy()\narray([0, 1, 2])");
  m.def(
      "positions_along", [](ArrayLike x, int axis) { return positions_along(x, axis); }, "x"_a,
      "axis"_a,
      "0, 1, ... up to the size of an axis.\n\n>>> cairn.positions_along([5.0, 6.0], "
      "0).numpy()\narray([0, 1])");
}

}  // namespace

void bind_ops(nb::module_& m) {
  bind_elementwise(m);
  bind_reductions(m);
  bind_shapes(m);
  bind_model_ops(m);
  m.def(
      "grad", [](const Array& loss, ArrayList wrt) { return grad(loss, wrt); }, "loss"_a, "wrt"_a,
      "The gradients of a scalar with respect to these arrays, by which it was computed.\n\n>>> x "
      "= cairn.Array([3.0])\n>>> cairn.grad(cairn.sum(x * x), [x])[0].numpy()\narray([6.], "
      "dtype=float32)");
}

}  // namespace cairn::python
