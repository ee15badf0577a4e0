// Shared by all files of the module: how C++ threads and Python's interpreter meet.
//
//   GIL       Released in every call that may wait (Released), and never around what records an
//             operation, which takes a microsecond.
//   Reference A Python object held by C++, which any thread may drop: it waits in a queue that the
//             next call into the module empties. A C++ thread never takes the GIL to let go of
//             something, because one that asks for it while the interpreter ends is unwound.
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

// The GIL let go of for a while. Once the interpreter is about to end, a thread that is not the
// main one does not come back: it stays here, since one that asks for the GIL then is unwound,
// which destructors of C++ do not survive.
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

// From now on what is recorded knows its line, below the folder of the package its caller's.
void take_origins_from_python(const std::string& package);
// Whether a function of Python's is being recorded on this thread.
bool is_tracing();
// The line that calls, for what C++ records on its behalf without the GIL.
class Caller {
 public:
  Caller();
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

 private:
  Origin before_;
};
// A call that records while a function is traced, with the GIL, and else may wait for a cluster.
// An error there names the line of Python that made the call.
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

}  // namespace cairn::python
