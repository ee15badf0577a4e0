// Cairn's errors as Python's: the classes are those of cairn/errors.py, one for each code.
#include <nanobind/stl/string.h>

#include <array>

#include "core/base/error.h"
#include "data/dataset/map_origins.h"
#include "interpreter.h"
#include "wording.h"

namespace cairn::python {
namespace {

// By code, borrowed from the package, which lives as long as the interpreter.
std::array<PyObject*, 17> classes{};
PyObject* not_finite = nullptr;
PyObject* input = nullptr;

void raise_current() {
  ErrorParts parts = error_parts(std::current_exception());
  if (parts.input_pipeline) add_map_origin(parts);
  PyObject* kind = classes[static_cast<std::size_t>(parts.code)];
  if (parts.not_finite) kind = not_finite;
  if (parts.input_pipeline) kind = input;
  nb::object made = nb::borrow(kind)(in_python(parts.message));
  made.attr("code") = std::string(code_name(parts.code));
  made.attr("task") = parts.task;
  made.attr("origin") = parts.place.origin;
  if (parts.input_pipeline) made.attr("pipeline") = *parts.input_pipeline;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
}

}  // namespace

void bind_errors(nb::module_& m) {
  nb::register_exception_translator(
      [](const std::exception_ptr& caught, void*) {
        try {
          std::rethrow_exception(caught);
        } catch (const Error&) {
          raise_current();
        }
      },
      nullptr);
  m.def(
      "_set_error_classes",
      [](nb::dict by_code, nb::object not_finite_class, nb::object input_class) {
        for (auto [code, kind] : by_code)
          classes.at(nb::cast<std::size_t>(code)) = nb::borrow(kind).release().ptr();
        not_finite = not_finite_class.release().ptr();
        input = input_class.release().ptr();
      },
      nb::sig("def _set_error_classes(by_code: dict[int, type], not_finite: type, input: type) -> "
              "None"));
}

}  // namespace cairn::python
