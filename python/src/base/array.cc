// cairn.Array, and what Python's operators mean for it.
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "core/graph/subscript.h"
#include "values.h"

namespace cairn::python {
namespace {

[[noreturn]] void refuse(const char* text) { throw nb::type_error(text); }

// The value of an array that has one; a TypeError with the cure while it is recorded.
Tensor value_of(const Array& array, const char* text) {
  try {
    return released([&] { return array.eval(); });
  } catch (const FailedPreconditionError&) {
    refuse(text);
  }
}

double number_of(const Array& array, const char* what) {
  const Tensor value = value_of(array, what);
  if (value.elements() != 1)
    throw nb::type_error(str("an Array of shape ", value.shape().to_string(),
                             " is no single number: only one element can become one")
                             .c_str());
  return cast(Array(value.reshaped({})), DType::kFloat64).eval().item<double>();
}

// ---- x[...] ----

Subscript subscript_of(nb::handle part) {
  if (part.is_none()) return kNewAxis;
  if (part.ptr() == Py_Ellipsis) return kEllipsis;
  if (PySlice_Check(part.ptr())) {
    const auto bound = [&](const char* name) -> std::optional<std::int64_t> {
      const nb::object value = part.attr(name);
      if (value.is_none()) return std::nullopt;
      if (!PyIndex_Check(value.ptr()))
        refuse(
            "a bound of a slice is an int: an Array has no value while it is recorded; use "
            "cairn.slice() or cairn.gather()");
      const std::optional<std::int64_t> place = index_of(value);
      if (!place) refuse("a bound of a slice is a single int");
      return place;
    };
    return Slice{bound("start"), bound("stop"), bound("step")};
  }
  if (nb::isinstance<Array>(part))
    refuse(
        "an Array is no subscript, since it has no value while it is recorded: use "
        "cairn.gather(x, ids)");
  if (!PyBool_Check(part.ptr()) && PyIndex_Check(part.ptr()))
    if (const std::optional<std::int64_t> place = index_of(part)) return *place;
  const Tensor mask = tensor_of(part);
  if (mask.dtype() != DType::kBool)
    refuse(
        "a subscript is an int, a slice, None, ... or a mask of bool; rows by number are "
        "cairn.gather(x, ids)");
  return mask;
}

}  // namespace

std::vector<Subscript> subscripts_of(nb::handle parts) {
  std::vector<Subscript> all;
  if (nb::isinstance<nb::tuple>(parts))
    for (nb::handle part : parts) all.push_back(subscript_of(part));
  else
    all.push_back(subscript_of(parts));
  return all;
}

namespace {

// NumPy asks here when an Array is among its operands: operators are recorded, and functions of
// NumPy's own compute only what has its value at hand.
nb::object array_ufunc(nb::handle self, nb::handle ufunc, nb::handle method, nb::args inputs,
                       nb::kwargs options) {
  static constexpr std::pair<const char*, const char*> kOperators[] = {
      {"add", "add"},      {"subtract", "sub"},     {"multiply", "mul"}, {"divide", "truediv"},
      {"power", "pow"},    {"matmul", "matmul"},    {"less", "lt"},      {"less_equal", "le"},
      {"greater", "gt"},   {"greater_equal", "ge"}, {"equal", "eq"},     {"not_equal", "ne"},
      {"remainder", "mod"}};
  const auto name = nb::cast<std::string>(ufunc.attr("__name__"));
  const bool plain = nb::cast<std::string>(method) == "__call__" && options.size() == 0;
  if (plain && inputs.size() == 2)
    for (const auto& [theirs, ours] : kOperators)
      if (name == theirs) {
        const nb::object left = nb::cast(array_of(inputs[0]));
        return nb::module_::import_("operator").attr(ours)(left, inputs[1]);
      }
  nb::list values;
  for (nb::handle input : inputs) {
    if (!nb::isinstance<Array>(input)) {
      values.append(input);
      continue;
    }
    const std::string text = str("numpy.", name, " cannot be recorded: write cairn.", name,
                                 "(x), or compute it outside of the function");
    values.append(numpy_of(value_of(nb::cast<const Array&>(input), text.c_str())));
  }
  (void)self;
  return ufunc.attr(nb::cast<const char*>(method))(*values, **options);
}

// NumPy makes the capsule. Values are read-only, which DLPack can say from its version 1.0 on;
// a caller that asks for an older one gets a copy.
nb::object dlpack_of(const Array& array, nb::handle stream, nb::handle max_version,
                     nb::handle dl_device, nb::handle copy) {
  nb::object value = numpy_of(value_of(
      array,
      "an Array has no value while it is recorded: return it from the function, and pass the "
      "result on"));
  if (!stream.is_none()) throw nb::buffer_error("an Array lies in host memory and has no stream");
  const bool versioned =
      !max_version.is_none() && nb::cast<int>(nb::object(nb::borrow(max_version)[0])) >= 1;
  if (copy.ptr() == Py_True || (!versioned && copy.ptr() != Py_False)) value = value.attr("copy")();
  nb::dict options;
  if (!max_version.is_none()) options["max_version"] = max_version;
  if (!dl_device.is_none()) options["dl_device"] = dl_device;
  return value.attr("__dlpack__")(**options);
}

template <typename Op>
void bind_operator(nb::class_<Array>& array, const char* name, const char* reflected, Op op) {
  array.def(
      name, [op](const Array& a, ArrayLike b) { return op(a, b); }, nb::is_operator(), "other"_a);
  if (reflected != nullptr)
    array.def(
        reflected, [op](const Array& b, ArrayLike a) { return op(a, b); }, nb::is_operator(),
        "other"_a);
}

constexpr const char* kNoTruth =
    "an Array has no truth value while it is recorded: choose by cairn.where(condition, a, b)";
constexpr const char* kNoNumber =
    "an Array has no value while it is recorded: return it from the function, and ask the result";

}  // namespace

void bind_values(nb::module_& m) {
  nb::class_<Array> array(m, "Array",
                          R"(A value that is recorded, and computed when it is asked for.

Operations on arrays record what is to be computed; numpy() computes it. Within a function
that is being traced an Array has a type and no value.

>>> x = cairn.Array([1.0, 2.0])
>>> (x * 2).numpy()
array([2., 4.], dtype=float32))");
  array
      .def(
          "__init__",
          [](Array* made, ArrayLike value, nb::object dtype) {
            Array plain = value;
            if (!dtype.is_none()) plain = cast(plain, dtype_of(dtype));
            new (made) Array(std::move(plain));
          },
          "value"_a, "dtype"_a = nb::none(),
          nb::sig("def __init__(self, value: cairn.typing.ArrayLike, dtype: "
                  "cairn.typing.DTypeLike | None = None) -> None"))
      .def_prop_ro(
          "shape", [](const Array& x) { return tuple_of(x.shape()); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"),
          "The sizes of the axes; None: known only when it runs.")
      .def_prop_ro("ndim", &Array::rank, "How many axes there are.")
      .def_prop_ro(
          "dtype", [](const Array& x) { return std::string(dtype_name(x.dtype())); },
          "The name of the elements' type, such as \"float32\".")
      .def(
          "numpy", [](const Array& x) { return numpy_of(value_of(x, kNoNumber)); },
          nb::sig("def numpy(self) -> cairn.typing.NDArray"),
          "The value, computed now: a read-only view of Cairn's own memory.")
      .def(
          "item", [](const Array& x) { return numpy_of(value_of(x, kNoNumber)).attr("item")(); },
          nb::sig("def item(self) -> float | int | bool | str"),
          "The only element, as Python's own.")
      .def(
          "__array__",
          [](const Array& x, nb::object dtype, nb::object copy) {
            nb::object value = numpy_of(value_of(x, kNoNumber));
            if (!dtype.is_none()) value = value.attr("astype")(dtype);
            return nb::cast<bool>(nb::bool_(copy.is_none() ? nb::object(nb::bool_(false)) : copy))
                       ? nb::object(value.attr("copy")())
                       : value;
          },
          "dtype"_a = nb::none(), "copy"_a = nb::none(),
          nb::sig("def __array__(self, dtype: cairn.typing.DTypeLike | None = None, copy: bool | "
                  "None = None) -> cairn.typing.NDArray"))
      .def("__dlpack__", &dlpack_of, nb::kw_only(), "stream"_a = nb::none(),
           "max_version"_a = nb::none(), "dl_device"_a = nb::none(), "copy"_a = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: typing.Any = None, max_version: tuple[int, "
                   "int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | "
                   "None = None) -> typing.Any"),
           "For from_dlpack() of other libraries. The same memory for those that know of read-only "
           "memory, else a copy.")
      .def(
          "__dlpack_device__", [](const Array&) { return nb::make_tuple(1, 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__array_ufunc__", &array_ufunc,
           nb::sig("def __array_ufunc__(self, ufunc: cairn.typing.UFunc, method: str, *inputs: "
                   "typing.Any, "
                   "**options: typing.Any) -> typing.Any"))
      .def("__repr__",
           [](const Array& x) {
             try {
               return "<cairn.Array " + x.eval().to_string() + ">";
             } catch (const Error&) {
               return "<cairn.Array " + x.type().to_string() + ", recorded>";
             }
           })
      .def("__bool__", [](const Array& x) { return number_of(x, kNoTruth) != 0; })
      .def("__float__", [](const Array& x) { return number_of(x, kNoNumber); })
      .def(
          "__int__",
          [](const Array& x) { return nb::int_(numpy_of(value_of(x, kNoNumber)).attr("item")()); },
          nb::sig("def __int__(self) -> int"))
      .def("__len__",
           [](const Array& x) {
             if (x.rank() == 0) refuse("an Array without axes has no length");
             if (x.shape()[0] == Shape::kUnknown)
               refuse(
                   "the length of this Array is known only when it runs: cairn.dim_size(x, 0) "
                   "records it");
             return x.shape()[0];
           })
      .def(
          "__iter__",
          [](const Array& x) -> nb::object {
            return numpy_of(value_of(x,
                                     "an Array cannot be looped over while it is recorded: "
                                     "operations work on all elements at once"))
                .attr("__iter__")();
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[typing.Any]"))
      .def(
          "__contains__",
          [](const Array& x, nb::handle element) {
            return nb::cast<bool>(
                numpy_of(value_of(x,
                                  "`in` needs the value of an Array, which is not known while "
                                  "it is recorded: write cairn.reduce_any(x == element)"))
                    .attr("__contains__")(element));
          },
          nb::sig("def __contains__(self, element: object) -> bool"))
      .def(
          "__getitem__",
          [](const Array& x, nb::handle parts) { return subscript(x, subscripts_of(parts)); },
          nb::sig("def __getitem__(self, parts: cairn.typing.Subscripts) -> Array"))
      .def(
          "__setitem__",
          [](const Array&, nb::handle, nb::handle) {
            refuse(
                "an Array does not change: choose elements by cairn.where(condition, a, b), or "
                "rows by cairn.scatter_update(x, ids, rows)");
          },
          nb::sig("def __setitem__(self, parts: typing.Any, value: typing.Any) -> typing.NoReturn"))
      .def("__neg__", [](const Array& x) { return neg(x); })
      .def("__abs__", [](const Array& x) { return abs(x); })
      .def("__invert__", [](const Array& x) { return logical_not(x); })
      .def("__hash__",
           [](const Array& x) { return reinterpret_cast<std::uintptr_t>(x.node().get()); });
  m.def(
      "from_dlpack",
      [](nb::handle from, bool copy) {
        if (!nb::hasattr(from, "__dlpack__"))
          refuse("from_dlpack() takes an array of another library, which has __dlpack__");
        return Array(tensor_of(nb::module_::import_("numpy").attr("from_dlpack")(from), !copy));
      },
      "array"_a, "copy"_a = true,
      nb::sig("def from_dlpack(array: typing.Any, copy: bool = True) -> Array"),
      "An Array of another library's, in host memory. What may be written to is copied, unless "
      "`copy` is False.\n\n"
      ">>> cairn.from_dlpack(np.arange(3.0)).numpy()\narray([0., 1., 2.])");
  bind_operator(array, "__add__", "__radd__",
                [](const Array& a, const Array& b) { return add(a, b); });
  bind_operator(array, "__sub__", "__rsub__",
                [](const Array& a, const Array& b) { return sub(a, b); });
  bind_operator(array, "__mul__", "__rmul__",
                [](const Array& a, const Array& b) { return mul(a, b); });
  bind_operator(array, "__truediv__", "__rtruediv__",
                [](const Array& a, const Array& b) { return div(a, b); });
  bind_operator(array, "__mod__", "__rmod__",
                [](const Array& a, const Array& b) { return floor_mod(a, b); });
  bind_operator(array, "__pow__", "__rpow__",
                [](const Array& a, const Array& b) { return pow(a, b); });
  bind_operator(array, "__matmul__", "__rmatmul__",
                [](const Array& a, const Array& b) { return matmul(a, b); });
  bind_operator(array, "__and__", "__rand__",
                [](const Array& a, const Array& b) { return logical_and(a, b); });
  bind_operator(array, "__or__", "__ror__",
                [](const Array& a, const Array& b) { return logical_or(a, b); });
  bind_operator(array, "__xor__", "__rxor__",
                [](const Array& a, const Array& b) { return logical_xor(a, b); });
  bind_operator(array, "__lt__", nullptr,
                [](const Array& a, const Array& b) { return less(a, b); });
  bind_operator(array, "__le__", nullptr,
                [](const Array& a, const Array& b) { return less_equal(a, b); });
  bind_operator(array, "__gt__", nullptr,
                [](const Array& a, const Array& b) { return greater(a, b); });
  bind_operator(array, "__ge__", nullptr,
                [](const Array& a, const Array& b) { return greater_equal(a, b); });
  array.def(
      "__eq__", [](const Array& a, ArrayLike b) { return equal(a, b); }, nb::is_operator(),
      "other"_a, nb::sig("def __eq__(self, other: cairn.typing.ArrayLike, /) -> Array"));
  array.def(
      "__ne__", [](const Array& a, ArrayLike b) { return not_equal(a, b); }, nb::is_operator(),
      "other"_a, nb::sig("def __ne__(self, other: cairn.typing.ArrayLike, /) -> Array"));
}

}  // namespace cairn::python
