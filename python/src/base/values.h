// Values between Python and Cairn: NumPy's arrays, numbers, texts, and Array.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/ops.h"
#include "core/tensor/tensor.h"
#include "interpreter.h"

namespace cairn::python {

// A tensor of the object's elements: an Array that has its value at hand, a NumPy array or whatever
// gives one (DLPack, __array__), a number, a text, or a nest of lists of such.
//   Copies  memory that may be written to, since what is recorded reads it later; `share` takes it
//           as it is. What is read-only is always shared.
//   Errors  TypeError: no such thing, or a dtype that Cairn has not; it says what to write.
Tensor tensor_of(nb::handle object, bool share = false);
// A constant of it; an Array or a Variable as it is. Numbers are as in C++: a float is float32, an
// int takes the type of what it meets.
Array array_of(nb::handle object);
// Keeps the object for as long as anybody has the pointer.
std::shared_ptr<const void> share_owner(nb::handle object);
// Read-only, and the same memory; texts are an array of str.
nb::object numpy_of(const Tensor& tensor);

// By name ("float32"), as NumPy's dtype, or as float, int, bool, str.
DType dtype_of(nb::handle object);
// The int that an object stands for, as for subscripts; nullopt: it stands for none, as an array of
// several elements.
//   Errors  InvalidArgument: it is beyond int64.
std::optional<std::int64_t> index_of(nb::handle object);
// A tuple of sizes; None: not known.
nb::object tuple_of(const Shape& shape);
Shape shape_of(nb::handle object);

// "sum", "mean" or "sqrtn".
Combiner combiner_of(const std::string& name);

// Arguments of such kinds, turned into what they are when they are used, where an error can say
// more than that no overload fits.
struct ArrayLike {
  nb::handle object;
  operator Array() const { return array_of(object); }
};
struct DTypeLike {
  nb::handle object;
  operator DType() const { return dtype_of(object); }
};
struct ShapeLike {
  nb::handle object;
  operator Shape() const { return shape_of(object); }
};
// A sequence of arrays.
struct ArrayList {
  nb::handle object;
  operator std::vector<Array>() const;
};

}  // namespace cairn::python

namespace nanobind::detail {
#define CAIRN_LAZY_CASTER(Type, name)                                            \
  template <>                                                                    \
  struct type_caster<cairn::python::Type> {                                      \
    NB_TYPE_CASTER(cairn::python::Type, const_name(name))                        \
    bool from_python(handle source, uint8_t, cleanup_list*) noexcept {           \
      value.object = source;                                                     \
      return true;                                                               \
    }                                                                            \
    static handle from_cpp(cairn::python::Type made, rv_policy, cleanup_list*) { \
      return made.object.inc_ref();                                              \
    }                                                                            \
  };
CAIRN_LAZY_CASTER(ArrayLike, "cairn.typing.ArrayLike")
CAIRN_LAZY_CASTER(DTypeLike, "cairn.typing.DTypeLike")
CAIRN_LAZY_CASTER(ShapeLike, "cairn.typing.ShapeLike")
CAIRN_LAZY_CASTER(ArrayList, "collections.abc.Sequence[cairn.typing.ArrayLike]")
#undef CAIRN_LAZY_CASTER
}  // namespace nanobind::detail
