// Shared by all files of the module: how C++ threads and Python's interpreter meet.
//
//   GIL       Released in every call that may wait (Released), and never around what records an
//             operation, which takes a microsecond.
//   Reference A Python object held by C++. Any thread may drop it: the object then waits in a
//             queue, which the next call into the module empties. A C++ thread never takes the GIL
//             just to release an object, since a thread that asks for the GIL while the
//             interpreter is shutting down is unwound.
#pragma once
#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/look_up.h"
#include "core/base/origin.h"

namespace nb = nanobind;

namespace cairn::python {

using namespace nb::literals;

// Releases the GIL for as long as it lives. Once the interpreter is about to end, only the main
// thread returns from the destructor. Other threads stop there for good, because a thread that asks
// for the GIL at that time is unwound, which C++ destructors do not survive.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};
// The interpreter is about to end: threads that are in a call stay there. Returns whether all do,
// which takes as long as they take to look up; false, after a second, if one does not.
bool stay_away_from_gil();

// Whether this thread holds the GIL, as far as this module knows.
bool has_gil();

// A call that may wait: others run Python meanwhile, and Ctrl-C is looked for every 100 ms, whose
// KeyboardInterrupt gives the call up (core/base/look_up.h).
class Released {
 public:
  Released();
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  struct State {
    State();
    WithoutGil gil;
    LookUp look_up;
  };
  std::optional<State> state_;
};
template <typename F>
decltype(auto) released(F&& call) {
  const Released here;
  return std::forward<F>(call)();
}

// From now on every recorded operation gets the line of the innermost Python frame that is not in
// the folder `package`.
void take_origins_from_python(const std::string& package);
// Whether a function of Python's is being recorded on this thread.
bool is_tracing();
// Remembers the line of Python that makes a call. Operations that C++ records during the call, when
// it does not hold the GIL, get that line as their origin.
class Caller {
 public:
  Caller();
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

 private:
  Origin before_;
};
// Makes a call that only records while a function is being traced, and keeps the GIL then.
// Otherwise the call may wait for a cluster, and the GIL is released. Errors name the calling line
// of Python.
template <typename F>
decltype(auto) recorded_or_run(F&& call) {
  if (is_tracing()) return std::forward<F>(call)();
  const Caller caller;
  return released(std::forward<F>(call));
}

// While a function of Python's is called to be recorded.
class Tracing {
 public:
  Tracing();
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
};

// Within what C++ calls back: Python runs here.
class Acquired {
 public:
  Acquired();
  ~Acquired();
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

 private:
  PyGILState_STATE state_;
  bool before_;
};

class Reference {
 public:
  explicit Reference(nb::object object) : object_(object.release().ptr()) {}
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  nb::handle get() const { return object_; }

 private:
  PyObject* object_;
};
using SharedReference = std::shared_ptr<const Reference>;
inline SharedReference share(nb::object object) {
  return std::make_shared<const Reference>(std::move(object));
}
// Lets go of what waits in the queue. With the GIL.
void drop_references();

// FailedPrecondition: this process is a child of the one that imported Cairn, and has none of its
// threads.
void require_own_process();

// ---- the parts of the module, in the order in which they are bound ----
void bind_errors(nb::module_& m);
void bind_values(nb::module_& m);
void bind_ops(nb::module_& m);
void bind_model_ops(nb::module_& m);  // by bind_ops()
void bind_variables(nb::module_& m);
void bind_data(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_layers(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_metrics(nb::module_& m);
void bind_optimizers(nb::module_& m);
void bind_callbacks(nb::module_& m);
void bind_model(nb::module_& m);
void bind_saved_models(nb::module_& m);
void bind_strategies(nb::module_& m);
void bind_cluster(nb::module_& m);
void bind_jobs(nb::module_& m);

}  // namespace cairn::python
