// Operations that models are made of, look-ups by id, and random ones.
#include "core/base/random.h"
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
namespace {

void unary(nb::module_& m, const char* name, Array (*op)(const Array&), const char* doc) {
  m.def(
      name, [op](ArrayLike x) { return op(x); }, "x"_a, doc);
}
Padding padding_of(const std::string& name) {
  if (name == "valid" || name == "VALID") return Padding::kValid;
  if (name == "same" || name == "SAME") return Padding::kSame;
  throw InvalidArgumentError(str("padding is \"valid\" or \"same\", not \"", name, "\""));
}

RandomOptions random_of(std::uint64_t seed, nb::handle step) {
  return {.seed = seed, .step = step.is_none() ? Array() : array_of(step)};
}

void bind_lookups(nb::module_& m) {
  m.def(
      "gather", [](ArrayLike x, ArrayLike ids, int axis) { return gather(x, ids, axis); }, "x"_a,
      "ids"_a, "axis"_a = 0,
      "The slices of these numbers along an axis.\n\n>>> cairn.gather([5.0, 6.0], "
      "[1]).numpy()\narray([6.], dtype=float32)");
  m.def(
      "gather_along",
      [](ArrayLike x, ArrayLike ids, int axis) { return gather_along(x, ids, axis); }, "x"_a,
      "ids"_a, "axis"_a,
      "Elements by numbers of their own in each row (take_along_axis).\n\n>>> "
      "cairn.gather_along([[5.0, 6.0]], [[1]], 1).numpy()\narray([[6.]], dtype=float32)");
  m.def(
      "find_key", [](ArrayLike keys, ArrayLike sorted) { return find_key(keys, sorted); }, "keys"_a,
      "sorted"_a,
      "Where each key stands in a sorted list; its length where it does not.\n\n>>> "
      "cairn.find_key(cairn.range(2), cairn.range(1)).numpy()\narray([0, 1])");
  m.def(
      "unsorted_segment_sum",
      [](ArrayLike x, ArrayLike ids, std::int64_t segments) {
        return unsorted_segment_sum(x, ids, segments);
      },
      "x"_a, "ids"_a, "segments"_a,
      "The sums of the rows of each segment.\n\n>>> cairn.unsorted_segment_sum([1.0, 2.0], [0, 0], "
      "2).numpy()\narray([3., 0.], dtype=float32)");
  m.def(
      "one_hot", [](ArrayLike ids, std::int64_t depth) { return one_hot(ids, depth); }, "ids"_a,
      "depth"_a,
      "1 at the place of each id, 0 elsewhere.\n\n>>> cairn.one_hot([1], 2).numpy()\narray([[0., "
      "1.]], dtype=float32)");
  using Scatter = Array (*)(const Array&, const Array&, const Array&);
  static constexpr std::pair<const char*, Scatter> kScatters[] = {
      {"scatter_add", scatter_add},
      {"scatter_sub", scatter_sub},
      {"scatter_max", scatter_max},
      {"scatter_min", scatter_min},
      {"scatter_update", scatter_update}};
  for (const auto& [name, op] : kScatters)
    m.def(
        name, [op = op](ArrayLike x, ArrayLike ids, ArrayLike rows) { return op(x, ids, rows); },
        "x"_a, "ids"_a, "rows"_a,
        "x, with these rows changed.\n\n>>> cairn.scatter_add([1.0], [0], "
        "[2.0]).numpy()\narray([3.], dtype=float32)");
  m.def(
      "combine_rows",
      [](ArrayLike rows, ArrayLike row_splits, const std::string& combiner, nb::object weights) {
        if (weights.is_none()) return combine_rows(rows, row_splits, combiner_of(combiner));
        return combine_rows(rows, row_splits, combiner_of(combiner), array_of(weights));
      },
      "rows"_a, "row_splits"_a, "combiner"_a = "mean", "weights"_a = nb::none(),
      nb::sig("def combine_rows(rows: cairn.typing.ArrayLike, row_splits: cairn.typing.ArrayLike, "
              "combiner: "
              "str = 'mean', weights: cairn.typing.ArrayLike | None = None) -> Array"),
      "The sum, mean or sqrtn of the rows of each example of a ragged column.\n\n>>> "
      "cairn.combine_rows([[1.0], [3.0]], np.array([0, 2]), \"mean\").numpy()\narray([[2.]], "
      "dtype=float32)");
  m.def(
      "to_dense",
      [](ArrayLike values, ArrayLike row_splits, std::int64_t columns, ArrayLike value) {
        return to_dense(values, row_splits, columns, value);
      },
      "values"_a, "row_splits"_a, "columns"_a, "value"_a = 0,
      "A ragged column as a matrix, filled up with `value`.\n\n>>> cairn.to_dense([1, 2], "
      "np.array([0, 2]), 3).numpy()\narray([[1, 2, 0]], dtype=int32)");
  unary(m, "row_lengths", row_lengths,
        "How many values each example of a ragged column has.\n\n>>> "
        "cairn.row_lengths(np.array([0, 2])).numpy()\narray([2])");
  m.def(
      "row_mask",
      [](ArrayLike row_splits, std::int64_t columns) { return row_mask(row_splits, columns); },
      "row_splits"_a, "columns"_a,
      "Where to_dense() has values and not the filling.\n\n>>> cairn.row_mask(np.array([0, 1]), "
      "2).numpy()\narray([[ True, False]])");
  m.def(
      "string_hash_bucket",
      [](ArrayLike text, std::int64_t buckets) { return string_hash_bucket(text, buckets); },
      "text"_a, "buckets"_a,
      "A number below `buckets` for each text, always the same.\n\n>>> "
      "cairn.string_hash_bucket(\"a\", 10).dtype\n'int64'");
}

void bind_models(nb::module_& m) {
  unary(m, "softmax", softmax,
        "Probabilities over the last axis.\n\n>>> cairn.softmax([0.0, 0.0]).numpy()\narray([0.5, "
        "0.5], dtype=float32)");
  unary(m, "log_softmax", log_softmax,
        "log(softmax(x)).\n\n>>> cairn.log_softmax([0.0]).numpy()\narray([0.], dtype=float32)");
  using Loss = Array (*)(const Array&, const Array&);
  static constexpr std::pair<const char*, Loss> kLosses[] = {
      {"sigmoid_cross_entropy_with_logits", sigmoid_cross_entropy_with_logits},
      {"softmax_cross_entropy_with_logits", softmax_cross_entropy_with_logits},
      {"sparse_softmax_cross_entropy_with_logits", sparse_softmax_cross_entropy_with_logits}};
  for (const auto& [name, op] : kLosses)
    m.def(
        name, [op = op](ArrayLike labels, ArrayLike logits) { return op(labels, logits); },
        "labels"_a, "logits"_a,
        "The cross entropy of each example.\n\n>>> cairn.sigmoid_cross_entropy_with_logits([1.0], "
        "[0.0]).shape\n(1,)");
  unary(m, "dot_interaction", dot_interaction,
        "The products of all pairs of an example's vectors.\n\n>>> cairn.dot_interaction([[[1.0], "
        "[2.0]]]).numpy()\narray([[2.]], dtype=float32)");
  using Pair = std::array<std::int64_t, 2>;
  m.def(
      "conv2d",
      [](ArrayLike x, ArrayLike filter, Pair strides, const std::string& padding, Pair dilations) {
        return conv2d(x, filter,
                      {.strides = strides, .padding = padding_of(padding), .dilations = dilations});
      },
      "x"_a, "filter"_a, "strides"_a = Pair{1, 1}, "padding"_a = "valid",
      "dilations"_a = Pair{1, 1},
      "Images [b, h, w, c] under filters [h, w, c, n].\n\n>>> cairn.conv2d(np.ones((1, 3, 3, 1), "
      "\"float32\"), np.ones((3, 3, 1, 1), \"float32\")).shape\n(1, 1, 1, 1)");
  using Pool = Array (*)(const Array&, const Pool2dOptions&);
  static constexpr std::pair<const char*, Pool> kPools[] = {{"max_pool2d", max_pool2d},
                                                            {"avg_pool2d", avg_pool2d}};
  for (const auto& [name, op] : kPools)
    m.def(
        name,
        [op = op](ArrayLike x, Pair window, Pair strides, const std::string& padding) {
          return op(x, {.window = window, .strides = strides, .padding = padding_of(padding)});
        },
        "x"_a, "window"_a = Pair{2, 2}, "strides"_a = Pair{2, 2}, "padding"_a = "valid",
        "One number for each window of images [b, h, w, c].\n\n>>> cairn.max_pool2d(np.ones((1, 2, "
        "2, 1), \"float32\")).shape\n(1, 1, 1, 1)");
  m.def(
      "layer_norm",
      [](ArrayLike x, ArrayLike gamma, ArrayLike beta, float epsilon) {
        return layer_norm(x, gamma, beta, epsilon);
      },
      "x"_a, "gamma"_a, "beta"_a, "epsilon"_a = 1e-3f,
      "Each row with mean 0 and variance 1, then gamma and beta.\n\n>>> cairn.layer_norm([[1.0, "
      "3.0]], [1.0, 1.0], [0.0, 0.0]).shape\n(1, 2)");
  m.def(
      "batch_norm",
      [](ArrayLike x, ArrayLike gamma, ArrayLike beta, float epsilon) {
        const BatchNorm made = batch_norm(x, gamma, beta, epsilon);
        return std::tuple(made.y, made.mean, made.variance);
      },
      "x"_a, "gamma"_a, "beta"_a, "epsilon"_a = 1e-3f,
      "Each channel with mean 0 and variance 1 over the batch; and that mean and variance.\n\n>>> "
      "y, mean, variance = cairn.batch_norm([[1.0], [3.0]], [1.0], [0.0])\n>>> "
      "mean.numpy()\narray([2.], dtype=float32)");
}

template <typename N>
using RandomLike = Array (*)(const Array&, N, N, const RandomOptions&);
void bind_random_like(nb::module_& m) {
  const auto like = [&](const char* name, RandomLike<float> op, const char* first, float low,
                        const char* second, float high, const char* doc) {
    m.def(
        name,
        [op](ArrayLike like, float a, float b, std::uint64_t seed, nb::object step) {
          return op(like, a, b, random_of(seed, step));
        },
        "like"_a, nb::arg(first) = low, nb::arg(second) = high, "seed"_a = 0, "step"_a = nb::none(),
        nb::sig(str("def ", name, "(like: cairn.typing.ArrayLike, ", first, ": float = ", low,
                    ".0, ", second, ": float = ", high,
                    ".0, seed: int = 0, step: cairn.typing.ArrayLike | None = None) -> Array")
                    .c_str()),
        doc);
  };
  like("random_uniform_like", random_uniform_like, "low", 0, "high", 1,
       "random_uniform() of an array's shape.\n\n>>> cairn.random_uniform_like([1.0, "
       "2.0]).shape\n(2,)");
  like("random_normal_like", random_normal_like, "mean", 0, "stddev", 1,
       "random_normal() of an array's shape.\n\n>>> cairn.random_normal_like([1.0, "
       "2.0]).shape\n(2,)");
  like("random_truncated_normal_like", random_truncated_normal_like, "mean", 0, "stddev", 1,
       "random_truncated_normal() of an array's shape.\n\n>>> "
       "cairn.random_truncated_normal_like([1.0, 2.0]).shape\n(2,)");
  m.def(
      "random_integers_like",
      [](ArrayLike like, std::int64_t low, std::int64_t high, std::uint64_t seed, nb::object step) {
        return random_integers_like(like, low, high, random_of(seed, step));
      },
      "like"_a, "low"_a, "high"_a, "seed"_a = 0, "step"_a = nb::none(),
      nb::sig("def random_integers_like(like: cairn.typing.ArrayLike, low: int, high: int, seed: "
              "int = 0, step: cairn.typing.ArrayLike | None = None) -> Array"),
      "random_integers() of an array's shape.\n\n>>> cairn.random_integers_like([1.0, 2.0], 0, "
      "9).shape\n(2,)");
}

void bind_random_stream(nb::module_& m) {
  nb::class_<Random>(m, "Random", R"(Numbers from a seed, the same on every machine.

>>> random = cairn.Random(7)
>>> 0 <= random.below(10) < 10, 0.0 <= random.uniform() < 1.0
(True, True))")
      .def(nb::init<std::uint64_t>(), "seed"_a)
      .def("bits", &Random::bits, "64 random bits.")
      .def(
          "below",
          [](Random& random, std::uint64_t bound) {
            if (bound == 0) throw InvalidArgumentError("below: the bound is above 0");
            return random.below(bound);
          },
          "bound"_a, "A whole number in [0, bound).")
      .def("uniform", &Random::uniform, "A number in [0, 1).");
  m.def(
      "random_key",
      [](std::uint64_t seed, const std::variant<std::uint64_t, std::string>& part) {
        return std::visit([seed](const auto& each) { return cairn::random_key(seed, each); }, part);
      },
      "seed"_a, "part"_a,
      "A seed of a seed and a name or a number.\n\n>>> cairn.random_key(1, \"a\") == "
      "cairn.random_key(1, \"b\")\nFalse");
}

void bind_random(nb::module_& m) {
  m.def("step_key", &step_key,
        "The number of the step that runs, from which random operations draw.\n\n>>> "
        "cairn.step_key().shape\n(2,)");
  m.def(
      "random_uniform",
      [](ShapeLike shape, float low, float high, std::uint64_t seed, nb::object step) {
        return random_uniform(shape, low, high, random_of(seed, step));
      },
      "shape"_a, "low"_a = 0.0f, "high"_a = 1.0f, "seed"_a = 0, "step"_a = nb::none(),
      nb::sig("def random_uniform(shape: cairn.typing.ShapeLike, low: float = 0.0, high: float = "
              "1.0, seed: int = 0, step: cairn.typing.ArrayLike | None = None) -> Array"),
      "Numbers from low up to high, others in each step.\n\n>>> "
      "cairn.random_uniform((2,)).shape\n(2,)");
  m.def(
      "random_normal",
      [](ShapeLike shape, float mean, float stddev, std::uint64_t seed, nb::object step) {
        return random_normal(shape, mean, stddev, random_of(seed, step));
      },
      "shape"_a, "mean"_a = 0.0f, "stddev"_a = 1.0f, "seed"_a = 0, "step"_a = nb::none(),
      nb::sig("def random_normal(shape: cairn.typing.ShapeLike, mean: float = 0.0, stddev: float = "
              "1.0, seed: int = 0, step: cairn.typing.ArrayLike | None = None) -> Array"),
      "Numbers of a normal distribution, others in each step.\n\n>>> "
      "cairn.random_normal((2,)).shape\n(2,)");
  m.def(
      "random_truncated_normal",
      [](ShapeLike shape, float mean, float stddev, std::uint64_t seed, nb::object step) {
        return random_truncated_normal(shape, mean, stddev, random_of(seed, step));
      },
      "shape"_a, "mean"_a = 0.0f, "stddev"_a = 1.0f, "seed"_a = 0, "step"_a = nb::none(),
      nb::sig(
          "def random_truncated_normal(shape: cairn.typing.ShapeLike, mean: float = 0.0, stddev: "
          "float = 1.0, seed: int = 0, step: cairn.typing.ArrayLike | None = None) -> Array"),
      "The same, within two standard deviations.\n\n>>> "
      "cairn.random_truncated_normal((2,)).shape\n(2,)");
  m.def(
      "random_integers",
      [](ShapeLike shape, std::int64_t low, std::int64_t high, std::uint64_t seed,
         nb::object step) { return random_integers(shape, low, high, random_of(seed, step)); },
      "shape"_a, "low"_a, "high"_a, "seed"_a = 0, "step"_a = nb::none(),
      nb::sig("def random_integers(shape: cairn.typing.ShapeLike, low: int, high: int, seed: int = "
              "0, step: cairn.typing.ArrayLike | None = None) -> Array"),
      "Integers from low up to high, which is none of them.\n\n>>> cairn.random_integers((2,), 0, "
      "5).shape\n(2,)");
  m.def(
      "dropout",
      [](ArrayLike x, float rate, std::uint64_t seed, nb::object step) {
        return dropout(x, rate, random_of(seed, step));
      },
      "x"_a, "rate"_a, "seed"_a = 0, "step"_a = nb::none(),
      nb::sig("def dropout(x: cairn.typing.ArrayLike, rate: float, seed: int = 0, step: "
              "cairn.typing.ArrayLike | None = None) -> Array"),
      "Zeros in the place of a share of the elements; the others grow, so that the mean "
      "stays.\n\n>>> cairn.dropout([1.0], 0.0).numpy()\narray([1.], dtype=float32)");
}

}  // namespace

void bind_model_ops(nb::module_& m) {
  bind_lookups(m);
  bind_models(m);
  bind_random(m);
  bind_random_like(m);
  bind_random_stream(m);
}

}  // namespace cairn::python
