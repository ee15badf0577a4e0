// Gradients of operations as operations: what grad() records, for gradients of one's own.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/base/machine.h"
#include "core/base/random.h"
#include "core/graph/ops.h"
#include "graphs.h"
#include "values.h"

namespace cairn::python {
namespace {

#define CAIRN_GRAD_TEXT "Recorded by grad(); for a custom_gradient().\n\n>>> "

void bind_arranging(nb::module_& m) {
  m.def(
      "sum_to_like", [](ArrayLike x, ArrayLike like) { return sum_to_like(x, like); }, "x"_a,
      "like"_a,
      CAIRN_GRAD_TEXT
      "cairn.sum_to_like([[1.0], [2.0]], [0.0]).numpy()\narray([3.], "
      "dtype=float32)");
  m.def(
      "slice_grad",
      [](ArrayLike dy, ArrayLike like, int axis, std::int64_t begin) {
        return slice_grad(dy, like, axis, begin);
      },
      "dy"_a, "like"_a, "axis"_a, "begin"_a,
      CAIRN_GRAD_TEXT
      "cairn.slice_grad([1.0], [0.0, 0.0], 0, 1).numpy()\narray([0., 1.], "
      "dtype=float32)");
  m.def(
      "concat_grad",
      [](ArrayLike dy, ArrayList parts, int axis, int index) {
        return concat_grad(dy, parts, axis, index);
      },
      "dy"_a, "parts"_a, "axis"_a, "index"_a,
      CAIRN_GRAD_TEXT
      "cairn.concat_grad([1.0, 2.0], [[0.0], [0.0]], 0, 1).numpy()\narray([2.], "
      "dtype=float32)");
  m.def(
      "gather_grad",
      [](ArrayLike dy, ArrayLike ids, ArrayLike like, int axis) {
        return gather_grad(dy, ids, like, axis);
      },
      "dy"_a, "ids"_a, "like"_a, "axis"_a = 0,
      CAIRN_GRAD_TEXT
      "cairn.gather_grad([1.0], [1], [0.0, 0.0]).numpy()\narray([0., 1.], "
      "dtype=float32)");
  m.def(
      "gather_along_grad",
      [](ArrayLike dy, ArrayLike ids, ArrayLike like, int axis) {
        return gather_along_grad(dy, ids, like, axis);
      },
      "dy"_a, "ids"_a, "like"_a, "axis"_a,
      CAIRN_GRAD_TEXT
      "cairn.gather_along_grad([1.0], [1], [0.0, 0.0], 0).numpy()\narray([0., 1.], "
      "dtype=float32)");
  m.def(
      "is_last_of_id", [](ArrayLike ids) { return is_last_of_id(ids); }, "ids"_a,
      "Whether no later position has the same id.\n\n>>> cairn.is_last_of_id([7, 8, "
      "7]).numpy()\narray([False,  True,  True])");
}

void bind_reducing(nb::module_& m) {
  m.def(
      "reduce_prod_grad",
      [](ArrayLike dy, ArrayLike x, const std::vector<int>& axes, bool keep_dims) {
        return reduce_prod_grad(dy, x, axes, keep_dims);
      },
      "dy"_a, "x"_a, "axes"_a = std::vector<int>{}, "keep_dims"_a = false,
      CAIRN_GRAD_TEXT
      "cairn.reduce_prod_grad(1.0, [2.0, 3.0]).numpy()\narray([3., 2.], "
      "dtype=float32)");
  m.def(
      "combine_rows_grad",
      [](ArrayLike dy, ArrayLike row_splits, ArrayLike rows, const std::string& combiner) {
        return combine_rows_grad(dy, row_splits, rows, combiner_of(combiner));
      },
      "dy"_a, "row_splits"_a, "rows"_a, "combiner"_a = "mean",
      CAIRN_GRAD_TEXT
      "cairn.combine_rows_grad([[1.0]], np.array([0, 2]), [[0.0], [0.0]], "
      "\"sum\").numpy().tolist()\n[[1.0], [1.0]]");
  m.def(
      "to_dense_grad",
      [](ArrayLike dy, ArrayLike row_splits, ArrayLike like, std::int64_t columns) {
        return to_dense_grad(dy, row_splits, like, columns);
      },
      "dy"_a, "row_splits"_a, "like"_a, "columns"_a,
      CAIRN_GRAD_TEXT
      "cairn.to_dense_grad([[1.0, 2.0]], np.array([0, 1]), [0.0], "
      "2).numpy()\narray([1.], dtype=float32)");
  m.def(
      "dot_interaction_grad",
      [](ArrayLike dy, ArrayLike vectors) { return dot_interaction_grad(dy, vectors); }, "dy"_a,
      "vectors"_a,
      CAIRN_GRAD_TEXT "cairn.dot_interaction_grad([[1.0]], [[[1.0], [2.0]]]).shape\n(1, 2, 1)");
}

using Pair = std::array<std::int64_t, 2>;
Padding padding_of(const std::string& name) {
  if (name == "valid") return Padding::kValid;
  if (name == "same") return Padding::kSame;
  throw InvalidArgumentError(str("padding is \"valid\" or \"same\", not \"", name, "\""));
}

void bind_images(nb::module_& m) {
  using Conv = Array (*)(const Array&, const Array&, const Array&, const Conv2dOptions&);
  const auto conv = [&](const char* name, Conv op, const char* second, const char* doc) {
    m.def(
        name,
        [op](ArrayLike dy, ArrayLike other, ArrayLike like, Pair strides,
             const std::string& padding, Pair dilations) {
          return op(dy, other, like,
                    {.strides = strides, .padding = padding_of(padding), .dilations = dilations});
        },
        "dy"_a, nb::arg(second), "like"_a, "strides"_a = Pair{1, 1}, "padding"_a = "valid",
        "dilations"_a = Pair{1, 1}, doc);
  };
  conv("conv2d_grad_input", conv2d_grad_input, "filter",
       CAIRN_GRAD_TEXT
       "one = np.ones((1, 1, 1, 1), \"float32\")\n>>> "
       "cairn.conv2d_grad_input(one, one, one).item()\n1.0");
  conv("conv2d_grad_filter", conv2d_grad_filter, "x",
       CAIRN_GRAD_TEXT
       "one = np.ones((1, 1, 1, 1), \"float32\")\n>>> "
       "cairn.conv2d_grad_filter(one, one, one).item()\n1.0");
  using Pool = Array (*)(const Array&, const Array&, const Pool2dOptions&);
  const auto pool = [&](const char* name, Pool op, const char* second, const char* doc) {
    m.def(
        name,
        [op](ArrayLike dy, ArrayLike other, Pair window, Pair strides, const std::string& padding) {
          return op(dy, other,
                    {.window = window, .strides = strides, .padding = padding_of(padding)});
        },
        "dy"_a, nb::arg(second), "window"_a = Pair{2, 2}, "strides"_a = Pair{2, 2},
        "padding"_a = "valid", doc);
  };
  pool("max_pool2d_grad", max_pool2d_grad, "x",
       CAIRN_GRAD_TEXT
       "cairn.max_pool2d_grad(np.ones((1, 1, 1, 1), \"float32\"), "
       "np.ones((1, 2, 2, 1), \"float32\")).shape\n(1, 2, 2, 1)");
  pool("avg_pool2d_grad", avg_pool2d_grad, "like",
       CAIRN_GRAD_TEXT
       "cairn.avg_pool2d_grad(np.ones((1, 1, 1, 1), \"float32\"), "
       "np.ones((1, 2, 2, 1), \"float32\")).shape\n(1, 2, 2, 1)");
}
#undef CAIRN_GRAD_TEXT

void bind_machine(nb::module_& m) {
  m.def("machine_memory_bytes", &machine_memory_bytes,
        "The memory of this machine, or what its control group leaves to it.\n\n>>> "
        "cairn.machine_memory_bytes() > 0\nTrue");
  m.def("private_memory_bytes", &private_memory_bytes, "pid"_a = 0,
        "The memory that a process has for itself; 0: this one.\n\n>>> "
        "cairn.private_memory_bytes() > 0\nTrue");
  m.def("process_text", &process_text,
        "The release and this process's machine, as the log has them.\n\n>>> "
        "len(cairn.process_text()) > 0\nTrue");
  m.def(
      "philox",
      [](std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high) {
        return philox(key, counter_low, counter_high);
      },
      "key"_a, "counter_low"_a, "counter_high"_a = 0,
      "Four words of 32 bits, a function of key and counter (SC 2011).\n\n>>> "
      "len(cairn.philox(1, 2))\n4");
  m.def("mix_bits", &mix_bits, "x"_a,
        "64 bits in which every bit depends on all of x.\n\n>>> cairn.mix_bits(0)\n0");
  m.def("uniform_float", &uniform_float, "bits"_a,
        "32 random bits as a number in [0, 1).\n\n>>> cairn.uniform_float(1 << 31)\n0.5");
  m.def("scaled_below", &scaled_below, "bits"_a, "bound"_a,
        "64 random bits as a number in [0, bound).\n\n>>> cairn.scaled_below(1 << 63, 10)\n5");
  m.def("standard_normal", &standard_normal, "bits"_a,
        "Words of philox() as a normally distributed number.\n\n>>> "
        "isinstance(cairn.standard_normal(cairn.philox(1, 2)), float)\nTrue");
  m.def("truncated_normal", &truncated_normal, "key"_a, "element"_a,
        "The same, drawn again beyond two deviations.\n\n>>> abs(cairn.truncated_normal(1, 2)) <= "
        "2\nTrue");
}

}  // namespace

void bind_gradient_ops(nb::module_& m) {
  bind_arranging(m);
  bind_reducing(m);
  bind_images(m);
  bind_machine(m);
}

}  // namespace cairn::python
