// Options and reports: structs of C++ whose fields are keywords and properties in Python.
//
//   FieldsOf<Heartbeats>(m, "Heartbeats", "When a task counts as lost.")
//       .seconds("interval", &Heartbeats::interval, "Between two of them.")
//       .add("missed_max", &Heartbeats::missed_max, "So many in a row are too many.")
//       .options();
//
// gives Heartbeats(*, interval: float = ..., missed_max: int = ...). report() gives one that Python
// only reads. A file that uses it includes the casters of its fields' types.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/element.h"
#include "interpreter.h"

namespace cairn::python {

template <typename F>
std::string type_text() {
  if constexpr (std::is_same_v<F, bool>)
    return "bool";
  else if constexpr (std::is_integral_v<F>)
    return "int";
  else if constexpr (std::is_floating_point_v<F>)
    return "float";
  else if constexpr (std::is_same_v<F, std::string>)
    return "str";
  else if constexpr (requires { typename F::mapped_type; })
    return str("collections.abc.Mapping[", type_text<typename F::key_type>(), ", ",
               type_text<typename F::mapped_type>(), "]");
  else if constexpr (requires(F & f) {
                       typename F::value_type;
                       f.begin();
                     })
    return str("collections.abc.Sequence[", type_text<typename F::value_type>(), "]");
  else if constexpr (requires(F & f) { f.has_value(); })
    return str(type_text<typename F::value_type>(), " | None");
  else
    return nb::cast<std::string>(nb::type<F>().attr("__name__"));
}

inline std::chrono::nanoseconds duration_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}
inline double seconds_of(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

template <typename E>
using Words = std::vector<std::pair<const char*, E>>;
//   Errors  InvalidArgument: another word; lists them.
template <typename E>
E value_of_word(const std::string& what, const std::string& word, const Words<E>& words) {
  std::string all;
  for (const auto& [name, value] : words) {
    if (word == name) return value;
    all += str(all.empty() ? "" : ", ", '"', name, '"');
  }
  throw InvalidArgumentError(str(what, " is one of ", all, ", not \"", word, "\""));
}
template <typename E>
std::string word_of(E value, const Words<E>& words) {
  for (const auto& [name, each] : words)
    if (each == value) return name;
  return "";
}

template <typename T>
class FieldsOf {
 public:
  // `slots`: of the collector of cycles, for structs that hold functions of Python's.
  FieldsOf(nb::module_& m, const char* name, const char* doc, PyType_Slot* slots = nullptr)
      : name_(name),
        made_(slots == nullptr ? nb::class_<T>(m, name, doc)
                               : nb::class_<T>(m, name, nb::type_slots(slots), doc)) {}

  template <typename F>
  FieldsOf& add(const char* name, F T::*field, const char* doc) {
    return with(
        name, type_text<F>(), doc, [field](const T& of) -> F { return of.*field; },
        [field](T& of, F value) { of.*field = std::move(value); });
  }
  // A Duration, as Python has it.
  template <typename D>
  FieldsOf& seconds(const char* name, D T::*field, const char* doc) {
    return with(
        name, "float", doc,
        [field](const T& of) {
          return seconds_of(std::chrono::duration_cast<std::chrono::nanoseconds>(of.*field));
        },
        [field](T& of, double value) {
          of.*field = std::chrono::duration_cast<D>(duration_of(value));
        });
  }
  // A value of an enumeration, by its word.
  template <typename E>
  FieldsOf& word(const char* name, E T::*field, Words<E> words, const char* doc) {
    return with(
        name, "str", doc, [field, words](const T& of) { return word_of(of.*field, words); },
        [field, words, what = std::string(name)](T& of, const std::string& value) {
          of.*field = value_of_word(what, value, words);
        });
  }
  template <typename Get, typename Set>
  FieldsOf& with(const char* name, const std::string& type, const char* doc, Get get, Set set) {
    parameters_ += str(parameters_.empty() ? "" : ", ", name, ": ", type, " = ...");
    names_.push_back(name);
    using Value = std::remove_cvref_t<decltype(get(std::declval<const T&>()))>;
    setters_[name] = [set, get](T& of, nb::handle value) { set(of, nb::cast<Value>(value)); };
    const std::string got = str("def ", name, "(self) -> ", type);
    const std::string put = str("def ", name, "(self, value: ", type, ", /) -> None");
    getters_.push_back(
        [this, name, doc, get, got] { made_.def_prop_ro(name, get, nb::sig(got.c_str()), doc); });
    properties_.push_back([this, name, doc, get, set, got, put] {
      made_.def_prop_rw(name, get, set, nb::for_getter(nb::sig(got.c_str())),
                        nb::for_setter(nb::sig(put.c_str())), doc);
    });
    return *this;
  }

  // With a constructor, and properties that can be set.
  nb::class_<T>& options() {
    for (const auto& each : properties_) each();
    made_.def(
        "__init__",
        [setters = setters_, names = names_, title = name_](T* self, nb::kwargs given) {
          T value{};
          for (auto [key, each] : given) {
            const auto name = nb::cast<std::string>(key);
            const auto found = setters.find(name);
            if (found == setters.end()) refuse(title, name, names);
            set(title, name, found->second, value, each);
          }
          new (self) T(std::move(value));
        },
        nb::sig(str("def __init__(self, *, ", parameters_, ") -> None").c_str()));
    return made_;
  }
  // To be read only.
  nb::class_<T>& report() {
    for (const auto& each : getters_) each();
    return made_;
  }

 private:
  using Setter = std::function<void(T& of, nb::handle value)>;

  [[noreturn]] static void refuse(const std::string& title, const std::string& name,
                                  const std::vector<std::string>& names) {
    const std::string near = nearest_name(name, names);
    throw nb::type_error(str(title, "() has no argument \"", name, "\"",
                             near.empty() ? "" : "; did you mean \"" + near + "\"?")
                             .c_str());
  }
  static void set(const std::string& title, const std::string& name, const Setter& setter, T& of,
                  nb::handle value) {
    try {
      setter(of, value);
    } catch (const nb::cast_error&) {
      throw nb::type_error(str(title, "(): \"", name, "\" takes no ",
                               nb::cast<std::string>(nb::handle(value.type()).attr("__name__")))
                               .c_str());
    }
  }

  const char* name_;
  nb::class_<T> made_;
  std::string parameters_;
  std::vector<std::string> names_;
  std::map<std::string, Setter> setters_;
  std::vector<std::function<void()>> getters_, properties_;
};

}  // namespace cairn::python
