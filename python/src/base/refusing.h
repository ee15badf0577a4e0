// Errors about arguments: in Python's words, with the place at which the value was found.
#pragma once
#include <string>
#include <utility>

#include "core/base/error.h"
#include "interpreter.h"

namespace cairn::python {

// "3", "'text'", "None", "a Dense", "the class Dense", "a NumPy array of float32[2]".
std::string described(nb::handle object);
[[noreturn]] void type_error(const std::string& message);
//   Errors  TypeError: it cannot be called, or is a coroutine or a generator. `what`: "a loss is a
//           name or a function", which the message begins with.
void require_function(nb::handle function, const std::string& what);
//   Errors  TypeError: a class, in the place of an object that it makes.
void require_object(nb::handle object, const char* what);

// Calls f(); the message of an error of arguments is preceded by place().
template <typename Place, typename F>
decltype(auto) at_place(Place&& place, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const nb::builtin_exception& error) {
    if (error.type() != nb::exception_type::type_error) throw;
    type_error(str(place(), ": ", error.what()));
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str(place(), ": ", error.what()), error.task(), error.place());
  }
}

}  // namespace cairn::python
