#include "arguments.h"

#include <dlfcn.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <string>
#include <string_view>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "owner.h"

namespace cairn::python {
namespace {

// The error of a value that a function could not convert.
constexpr const char* kBadCast = "std::bad_cast";

// nanobind keeps, in each of its functions, a pointer to the code that takes a call of it, and has
// half a dozen such codes. Here each is replaced by one of ours, which calls it and looks at its
// error.
using Call = PyObject* (*)(PyObject*, PyObject* const*, std::size_t, PyObject*);
constexpr std::size_t kCallsMax = 8;
Call calls[kCallsMax] = {};

// The functions of properties have no names of their own. Never destroyed.
std::unordered_map<PyObject*, std::string>& titles() {
  static auto& all = *new std::unordered_map<PyObject*, std::string>;
  return all;
}

std::string text_of(nb::handle object, const char* attribute) {
  const nb::object value = nb::getattr(object, attribute, nb::none());
  return nb::isinstance<nb::str>(value) ? nb::cast<std::string>(value) : std::string();
}

bool is_method(nb::handle function) { return text_of(function.type(), "__name__") == "nb_method"; }

// "Dense()", "Model.fit()", "exp()", "Optimizer.learning_rate".
std::string title_of(nb::handle function, nb::handle self) {
  const auto found = titles().find(function.ptr());
  if (found != titles().end()) return found->second;
  const std::string name = text_of(function, "__name__");
  if (!self.is_valid()) return name + "()";
  std::string kind = text_of(self.type(), "__name__");
  if (kind.starts_with('_')) kind.erase(0, 1);
  return name == "__init__" ? kind + "()" : kind + "." + name + "()";
}

struct Explained {
  bool out_of_range = false;
  std::string text;
};
Explained explained(nb::handle function, PyObject* const* args, std::size_t count,
                    PyObject* names) {
  const bool method = is_method(function) && count > 0;
  nb::list by_place;
  nb::dict by_name;
  for (std::size_t i = method ? 1 : 0; i < count; ++i) by_place.append(nb::borrow(args[i]));
  if (names != nullptr)
    for (nb::handle name : nb::borrow<nb::tuple>(names)) by_name[name] = nb::borrow(args[count++]);
  const nb::handle self = method ? nb::handle(args[0]) : nb::handle();
  const nb::object made =
      nb::module_::import_("cairn._arguments")
          .attr("explain")(title_of(function, self), function.attr("__nb_signature__"),
                           is_method(function), by_place, by_name);
  return {nb::cast<bool>(nb::object(made[0])), nb::cast<std::string>(nb::object(made[1]))};
}

// Whether this is the error of the call itself, and none that Python code raised within it.
bool fits_none(nb::handle function, const std::string& message) {
  if (message == kBadCast) return true;
  const std::string name = text_of(function, "__name__");
  return std::string_view(message).starts_with(name + "(): incompatible function arguments");
}

void explain_error(PyObject* function, PyObject* const* args, std::size_t count,
                   PyObject* names) noexcept {
  if (PyErr_Occurred() == nullptr || PyErr_ExceptionMatches(PyExc_TypeError) == 0) return;
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  try {
    const std::string message =
        value == nullptr ? std::string() : nb::cast<std::string>(nb::str(nb::handle(value)));
    if (fits_none(function, message)) {
      const Explained made = explained(function, args, count, names);
      nb::object error = nb::borrow(PyExc_TypeError);
      if (made.out_of_range)
        error = nb::module_::import_("cairn.errors").attr("InvalidArgumentError");
      nb::object raised = error(made.text);
      if (made.out_of_range) raised.attr("code") = "InvalidArgument";
      PyErr_SetObject(error.ptr(), raised.ptr());
      Py_XDECREF(kind);
      Py_XDECREF(value);
      Py_XDECREF(trace);
      return;
    }
  } catch (...) {
    PyErr_Clear();  // the error as it was says more than none
  }
  PyErr_Restore(kind, value, trace);
}

template <std::size_t i>
PyObject* call(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* names) {
  const CallOfModule here;
  PyObject* made = calls[i](self, args, flags, names);
  if (made == nullptr) {
    constexpr std::size_t kCount = 0xFFFF'FFFF;  // the bits above are flags
    explain_error(self, args, flags & kCount, names);
  }
  return made;
}
template <std::size_t... i>
Call our_call(std::size_t place, std::index_sequence<i...>) {
  static constexpr Call kAll[] = {&call<i>...};
  return kAll[place];
}

std::string library_of(const void* code) {
  Dl_info info;
  return ::dladdr(code, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// Where in its functions nanobind keeps the pointer: the first word behind the head that leads into
// the library which has the code of their type. 0: there is none.
std::size_t find_place(nb::handle function) {
  constexpr std::size_t kHead = sizeof(PyObject) + sizeof(Py_ssize_t), kWords = 4;
  auto* type = reinterpret_cast<PyTypeObject*>(function.type().ptr());
  const std::string library = library_of(PyType_GetSlot(type, Py_tp_dealloc));
  for (std::size_t place = kHead; place < kHead + kWords * sizeof(void*); place += sizeof(void*)) {
    void* word = nullptr;
    std::memcpy(&word, reinterpret_cast<const char*>(function.ptr()) + place, sizeof word);
    if (!library.empty() && library_of(word) == library) return place;
  }
  return 0;
}

class Replacing {
 public:
  explicit Replacing(nb::handle function)
      : function_(function.type()), place_(find_place(function)) {}

  void module(nb::handle m) {
    for (auto [name, value] : nb::borrow<nb::dict>(m.attr("__dict__"))) {
      if (value.type().is(function_)) {
        replace(value);
      } else if (PyType_Check(value.ptr())) {
        type(value);
      } else if (PyModule_Check(value.ptr()) && seen_.insert(value.ptr()).second) {
        module(value);
      }
    }
  }

 private:
  void type(nb::handle of) {
    const nb::object items = of.attr("__dict__").attr("items")();
    for (nb::handle item : items) {
      const nb::object name = item[0], value = item[1];
      const std::string title = text_of(of, "__name__") + "." + nb::cast<std::string>(name);
      if (value.type().is(function_)) titles().emplace(value.ptr(), title + "()");
      if (text_of(value.type(), "__name__").starts_with("nb_"))
        replace(value);
      else if (nb::hasattr(value, "fset"))
        property(title, value);
    }
  }
  void property(const std::string& title, nb::handle of) {
    for (const char* each : {"fget", "fset"}) {
      const nb::object function = nb::getattr(of, each, nb::none());
      if (function.is_none()) continue;
      titles().emplace(function.ptr(), title);
      replace(function);
    }
  }
  void replace(nb::handle function) {
    const std::string kind = text_of(function.type(), "__name__");
    if (place_ == 0 || (kind != "nb_func" && kind != "nb_method")) return;
    if (!nb::hasattr(function, "__nb_signature__")) return;
    char* at = reinterpret_cast<char*>(function.ptr()) + place_;
    Call known = nullptr;
    std::memcpy(&known, at, sizeof known);
    for (std::size_t i = 0; i < kCallsMax; ++i) {
      const Call ours = our_call(i, std::make_index_sequence<kCallsMax>());
      if (known == ours) return;  // another name of it
      if (calls[i] == nullptr) calls[i] = known;
      if (calls[i] != known) continue;
      std::memcpy(at, &ours, sizeof ours);
      return;
    }
  }

  nb::handle function_;
  std::size_t place_;
  std::unordered_set<PyObject*> seen_;
};

}  // namespace

void explain_arguments(nb::module_& m) {
  nb::register_exception_translator(
      [](const std::exception_ptr& caught, void*) {
        try {
          std::rethrow_exception(caught);
        } catch (const std::bad_cast&) {
          PyErr_SetString(PyExc_TypeError, kBadCast);
        }
      },
      nullptr);
  Replacing(nb::object(m.attr("exp"))).module(m);
}

}  // namespace cairn::python
