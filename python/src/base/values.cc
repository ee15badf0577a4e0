#include "values.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/graph/ops.h"
#include "owner.h"
#include "refusing.h"
#include "strategy/base/distributed_values.h"

namespace cairn::python {
namespace {

// Modules and functions of NumPy that are asked for often; never let go of.
nb::object& numpy() {
  static nb::object& module = *new nb::object(nb::module_::import_("numpy"));
  return module;
}

// ---- NumPy's arrays, by the array interface: a dictionary of plain values ----

DType dtype_of_typestr(const std::string& type, nb::handle array) {
  if (type == "<f4") return DType::kFloat32;
  if (type == "<f8") return DType::kFloat64;
  if (type == "<i4") return DType::kInt32;
  if (type == "<i8") return DType::kInt64;
  if (type == "|u1") return DType::kUint8;
  if (type == "|b1") return DType::kBool;
  if (type == "<f2") return DType::kFloat16;
  const std::string name = nb::cast<std::string>(array.attr("dtype").attr("name"));
  if (type[0] == '>')
    type_error(str("an array of ", name,
                   " has its bytes in the other order: pass x.astype(x.dtype.",
                   "newbyteorder('='))"));
  switch (type[1]) {
    case 'c':
      type_error(
          str("an array of ", name, ": Cairn has no complex numbers; pass x.real and x.imag"));
    case 'f':
      type_error(
          str("an array of ", name, ", which Cairn does not have: pass x.astype('float32')"));
    case 'V':
      if (!nb::object(array.attr("dtype").attr("names")).is_none())
        type_error("an array of records: pass its fields as columns, {\"a\": x[\"a\"], ...}");
      type_error(str("an array of ", name, ", which Cairn does not have: pass numbers or texts"));
    case 'M':
    case 'm':
      type_error(str("an array of ", name,
                     ": Cairn has no dates; pass numbers, as x.astype('int64') gives them"));
    case 'i':
    case 'u':
      type_error(str("an array of ", name, ": pass x.astype('int64') or x.astype('int32'); ",
                     "Cairn's integers are int32, int64 and uint8"));
    default:
      type_error(
          str("an array of ", name, ", which Cairn does not have: pass numbers, bool or texts"));
  }
}

bool is_contiguous(nb::handle strides, const std::vector<std::int64_t>& dims, std::int64_t bytes) {
  if (strides.is_none()) return true;
  const nb::tuple all = nb::borrow<nb::tuple>(strides);
  if (std::ranges::find(dims, 0) != dims.end()) return true;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && nb::cast<std::int64_t>(all[i]) != bytes) return false;
    bytes *= dims[i];
  }
  return true;
}

Tensor texts_of(nb::handle array) {
  std::vector<std::string> texts;
  const nb::object flat = array.attr("ravel")().attr("tolist")();
  for (nb::handle each : flat) {
    if (nb::isinstance<nb::str>(each)) {
      texts.push_back(nb::cast<std::string>(each));
    } else if (nb::isinstance<nb::bytes>(each)) {
      const auto bytes = nb::borrow<nb::bytes>(each);
      texts.emplace_back(bytes.c_str(), bytes.size());
    } else {
      type_error(str("element ", texts.size(), " of an array of objects is ", described(each),
                     ": only texts may lie in such an array; give numbers a dtype by x.astype()"));
    }
  }
  return Tensor::strings(shape_of(array.attr("shape")), std::move(texts));
}

// A masked array has values behind its mask that mean nothing.
void refuse_mask(nb::handle array) {
  const nb::object mask = nb::getattr(array, "mask", nb::none());
  if (mask.is_none() || !nb::cast<bool>(nb::bool_(numpy().attr("any")(mask)))) return;
  type_error("an array with masked values: say what stands for them, by x.filled(0.0)");
}

Tensor tensor_of_numpy(nb::handle array, bool share) {
  const nb::dict interface = nb::borrow<nb::dict>(nb::object(array.attr("__array_interface__")));
  const auto type = nb::cast<std::string>(interface["typestr"]);
  if (type[1] == 'U' || type[1] == 'S' || type[1] == 'O') return texts_of(array);
  if (nb::cast<std::string>(array.attr("dtype").attr("kind")) == "T") return texts_of(array);
  const DType dtype = dtype_of_typestr(type, array);
  const auto dims = nb::cast<std::vector<std::int64_t>>(interface["shape"]);
  const nb::object strides = interface["strides"];
  if (!is_contiguous(strides, dims, static_cast<std::int64_t>(dtype_bytes(dtype))))
    return tensor_of_numpy(numpy().attr("array")(array, "order"_a = "C"), true);
  const nb::tuple data = nb::borrow<nb::tuple>(interface["data"]);
  const auto* at = reinterpret_cast<const std::byte*>(nb::cast<std::uintptr_t>(data[0]));
  if (!share && !nb::cast<bool>(data[1])) {
    Tensor made(dtype, Shape(dims));
    if (made.bytes() > 0) std::memcpy(made.mutable_raw(), at, made.bytes());
    return made;
  }
  return Tensor::borrowed(dtype, Shape(dims), at, share_owner(array));
}

}  // namespace

std::shared_ptr<const void> share_owner(nb::handle object) { return share(nb::borrow(object)); }

namespace {

PyTypeObject* numpy_array() {
  static nb::object& kind = *new nb::object(numpy().attr("ndarray"));
  return reinterpret_cast<PyTypeObject*>(kind.ptr());
}
bool is_numpy(nb::handle object) {
  return Py_TYPE(object.ptr()) == numpy_array() ||
         nb::isinstance(object, nb::handle(reinterpret_cast<PyObject*>(numpy_array())));
}

Tensor text_of(nb::handle object) {
  if (nb::isinstance<nb::str>(object))
    return Tensor::strings({}, std::vector<std::string>{nb::cast<std::string>(object)});
  const auto bytes = nb::borrow<nb::bytes>(object);
  return Tensor::strings({}, std::vector<std::string>{std::string(bytes.c_str(), bytes.size())});
}

bool is_text(nb::handle object) {
  return nb::isinstance<nb::str>(object) || nb::isinstance<nb::bytes>(object);
}

std::int64_t integer_of(nb::handle object) {
  const long long value = PyLong_AsLongLong(object.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw InvalidArgumentError(str("the integer ", nb::cast<std::string>(nb::str(object)),
                                   " is beyond int64, the widest that Cairn has"));
  }
  return value;
}

bool fits_int32(std::int64_t value) {
  return value >= std::numeric_limits<std::int32_t>::min() &&
         value <= std::numeric_limits<std::int32_t>::max();
}

// Lists of Python's numbers, which have no dtype of their own: float32, and int32 where all fit.
Tensor tensor_of_list(nb::handle list) {
  nb::object array;
  try {
    array = numpy().attr("asarray")(list);
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_ValueError)) throw;
    type_error(
        "a nest of lists whose rows have different lengths is no array: pad the rows, or "
        "pass a ragged column as values and row_splits");
  }
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (kind == "f") array = array.attr("astype")("float32");
  if (kind == "i") {
    const nb::object narrow = array.attr("astype")("int32");
    if (nb::cast<bool>(numpy().attr("array_equal")(narrow, array))) array = narrow;
  }
  if (kind == "O")
    type_error(
        "a list of values that are no numbers and no texts is no array; Arrays that are "
        "recorded are put together by cairn.stack()");
  return tensor_of_numpy(array, true);
}

}  // namespace

Tensor tensor_of(nb::handle object, bool share) {
  if (is_numpy(object)) {
    if (Py_TYPE(object.ptr()) != numpy_array()) refuse_mask(object);
    return tensor_of_numpy(object, share);
  }
  if (nb::isinstance<Array>(object)) return nb::cast<const Array&>(object).eval();
  if (nb::isinstance<OwnedVariable>(object))
    return released([&] { return nb::cast<const OwnedVariable&>(object).get().read().eval(); });
  if (PyBool_Check(object.ptr())) return Tensor::scalar(object.ptr() == Py_True);
  if (PyLong_Check(object.ptr())) {
    const std::int64_t value = integer_of(object);
    return fits_int32(value) ? Tensor::scalar(static_cast<std::int32_t>(value))
                             : Tensor::scalar(value);
  }
  if (PyFloat_Check(object.ptr()))
    return Tensor::scalar(static_cast<float>(PyFloat_AsDouble(object.ptr())));
  if (is_text(object)) return text_of(object);
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object))
    return tensor_of_list(object);
  if (nb::hasattr(object, "__dlpack__"))
    return tensor_of_numpy(numpy().attr("from_dlpack")(object), share);
  if (nb::hasattr(object, "__array__"))
    return tensor_of_numpy(numpy().attr("asarray")(object), share);
  const char* cure = PyIter_Check(object.ptr()) != 0
                         ? "make a list of it, or a dataset by cairn.Dataset.from_generator()"
                         : "an Array, a NumPy array, a number, a text or a list of such is wanted";
  type_error(str(described(object), " is no array: ", cure));
}

Array array_of(nb::handle object) {
  if (nb::isinstance<Array>(object)) return nb::cast<const Array&>(object);
  if (nb::isinstance<OwnedVariable>(object))
    return nb::cast<const OwnedVariable&>(object).get().read();
  if (PyBool_Check(object.ptr())) return Array(object.ptr() == Py_True);
  if (PyLong_Check(object.ptr())) {
    const std::int64_t value = integer_of(object);
    return fits_int32(value) ? Array(static_cast<std::int32_t>(value)) : Array(value);
  }
  if (PyFloat_Check(object.ptr())) return Array(PyFloat_AsDouble(object.ptr()));
  if (nb::isinstance<PerReplica>(object))
    type_error(
        "a value of several replicas is no array: reduce it first, by strategy.reduce(), or "
        "ask for each by strategy.experimental_local_results()");
  return Array(tensor_of(object));
}

nb::object numpy_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (tensor.dtype() == DType::kString) {
    nb::list texts;
    for (const std::string& each : tensor.string_values()) {
      PyObject* text = PyUnicode_DecodeUTF8(each.data(), static_cast<Py_ssize_t>(each.size()),
                                            "surrogateescape");
      if (text == nullptr) nb::raise_python_error();
      texts.append(nb::steal(text));
    }
    nb::object array = numpy().attr("empty")(tuple_of(shape), "object");
    array.attr("flat") = texts;
    return array;
  }
  if (tensor.dtype() == DType::kBfloat16) {
    Tensor wide(DType::kFloat32, shape);
    const auto* bits = reinterpret_cast<const std::uint16_t*>(tensor.raw());
    std::transform(bits, bits + tensor.elements(), wide.mutable_values<float>().begin(),
                   from_bfloat16);
    return numpy_of(wide);
  }
  const auto dlpack = [&] {
    switch (tensor.dtype()) {
      case DType::kFloat64: return nb::dtype<double>();
      case DType::kInt32: return nb::dtype<std::int32_t>();
      case DType::kInt64: return nb::dtype<std::int64_t>();
      case DType::kUint8: return nb::dtype<std::uint8_t>();
      case DType::kBool: return nb::dtype<bool>();
      case DType::kFloat16: return nb::dlpack::dtype{2, 16, 1};
      default: return nb::dtype<float>();
    }
  }();
  std::vector<std::size_t> sizes(shape.dims().begin(), shape.dims().end());
  const nb::capsule owner(new Tensor(tensor),
                          [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  nb::object made = nb::cast(nb::ndarray<nb::numpy, nb::ro>(
      const_cast<std::byte*>(tensor.raw()), sizes.size(), sizes.data(), owner, nullptr, dlpack));
  if (tensor.dtype() != DType::kInt64) return made;
  // C's long long, which NumPy prints as if it were no ordinary int64.
  static nb::object& int64 = *new nb::object(numpy().attr("dtype")("int64"));
  return made.attr("view")(int64);
}

DType dtype_of(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) {
    const auto name = nb::cast<std::string>(object);
    return name == "str" ? DType::kString : parse_dtype(name);
  }
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::kFloat32;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::kBool;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::kInt64;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyUnicode_Type)) return DType::kString;
  nb::object made;
  try {
    made = numpy().attr("dtype")(object);
  } catch (const nb::python_error&) {
    type_error(
        str("a dtype is a name such as \"float32\", NumPy's dtype, or float, int, bool or str, ",
            "not ", described(object)));
  }
  return parse_dtype(nb::cast<std::string>(made.attr("name")));
}

nb::object tuple_of(const Shape& shape) {
  nb::list sizes;
  for (const std::int64_t size : shape.dims()) {
    if (size == Shape::kUnknown)
      sizes.append(nb::none());
    else
      sizes.append(size);
  }
  return nb::tuple(sizes);
}

std::optional<std::int64_t> index_of(nb::handle object) {
  const nb::object whole = nb::steal(PyNumber_Index(object.ptr()));
  if (whole.is_valid()) return integer_of(whole);
  PyErr_Clear();
  return std::nullopt;
}

namespace {

std::int64_t size_of(nb::handle object) {
  const std::optional<std::int64_t> size = index_of(object);
  if (!size) type_error(str("a size of a shape is an int or None, not ", described(object)));
  return *size;
}

}  // namespace

Shape shape_of(nb::handle object) {
  if (PyLong_Check(object.ptr())) return Shape(std::vector<std::int64_t>{integer_of(object)});
  if (!nb::isinstance<nb::sequence>(object) || is_text(object))
    type_error(str("a shape is a tuple of sizes, not ", described(object)));
  std::vector<std::int64_t> dims;
  for (nb::handle size : object) {
    if (size.is_none()) {
      dims.push_back(Shape::kUnknown);
    } else if (PyLong_Check(size.ptr()) || PyIndex_Check(size.ptr())) {
      dims.push_back(size_of(size));
    } else {
      type_error(str("a size of a shape is an int or None, not ", described(size)));
    }
  }
  return Shape(std::move(dims));
}

ArrayList::operator std::vector<Array>() const {
  if (nb::isinstance<Array>(object) || !nb::isinstance<nb::sequence>(object))
    type_error(str("a list of arrays is wanted, not ", described(object)));
  std::vector<Array> all;
  for (nb::handle each : object) all.push_back(array_of(each));
  return all;
}

}  // namespace cairn::python
