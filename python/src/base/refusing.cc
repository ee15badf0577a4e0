#include "refusing.h"

#include <nanobind/stl/string.h>

namespace cairn::python {

std::string described(nb::handle object) {
  return nb::cast<std::string>(nb::module_::import_("cairn._arguments").attr("described")(object));
}

void type_error(const std::string& message) { throw nb::type_error(message.c_str()); }

void require_function(nb::handle function, const std::string& what) {
  if (PyCallable_Check(function.ptr()) == 0) type_error(str(what, ", not ", described(function)));
  const nb::object inspect = nb::module_::import_("inspect");
  for (const char* each : {"iscoroutinefunction", "isgeneratorfunction", "isasyncgenfunction"})
    if (nb::cast<bool>(inspect.attr(each)(function)))
      type_error(str(
          what, ", and \"",
          nb::cast<std::string>(nb::str(nb::getattr(function, "__name__", nb::str("function")))),
          "\" is a coroutine or a generator: what is recorded is called once and "
          "returns arrays"));
}

void require_object(nb::handle object, const char* what) {
  if (PyType_Check(object.ptr()) == 0) return;
  type_error(str(what, " is an object, not a class: write ",
                 nb::cast<std::string>(object.attr("__name__")), "()"));
}

}  // namespace cairn::python
