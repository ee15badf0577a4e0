#include "interpreter.h"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "forks.h"
#include "lazily_released.h"
#include "owner.h"

namespace cairn::python {
namespace {

thread_local bool gil_released = false;
thread_local int traces = 0;
thread_local int outside_calls = 0;  // one within the other
thread_local int inside_calls = 0;   // of Python, within calls into the module
thread_local Origin caller;

// Never destroyed: threads of the engine may outlive main().
struct Queue {
  std::atomic<bool> any{false};
  std::mutex mutex;
  std::vector<PyObject*> dropped;
};
Queue& queue() {
  static Queue& only = *new Queue;
  return only;
}

// Signals are looked for where Python runs, on its main thread; on others there are none.
void look_for_signals() {
  require_open_strategies();
  const Acquired here;
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
}

// ---- the line of Python that records ----

// A code object, as far as origins need it. Few exist, and each is kept as long as the process.
struct KnownCode {
  Origin origin;     // without the line
  bool own = false;  // of the package itself, whose caller is meant
};

std::string& package_folder() {
  static std::string& folder = *new std::string;
  return folder;
}

std::string text_of(PyObject* object, const char* attribute) {
  PyObject* value = PyObject_GetAttrString(object, attribute);
  std::string text;
  if (value != nullptr) {
    Py_ssize_t size = 0;
    const char* at = PyUnicode_AsUTF8AndSize(value, &size);
    if (at != nullptr) text.assign(at, static_cast<std::size_t>(size));
    Py_DECREF(value);
  }
  PyErr_Clear();
  return text;
}

const KnownCode& known_code(PyObject* code) {
  static auto& known = *new std::unordered_map<PyObject*, KnownCode>;
  const auto found = known.find(code);
  if (found != known.end()) return found->second;
  Py_INCREF(code);
  const std::string file = text_of(code, "co_filename");
  KnownCode made{make_origin(file, text_of(code, "co_name"), 0), false};
  made.own = !package_folder().empty() && file.starts_with(package_folder());
  return known.emplace(code, made).first->second;
}

// The innermost frame that is none of the package's.
Origin python_origin() {
  if (!has_gil()) return caller;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(reinterpret_cast<PyObject*>(frame));
  Origin origin;
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const KnownCode& known = known_code(reinterpret_cast<PyObject*>(code));
    Py_DECREF(reinterpret_cast<PyObject*>(code));
    PyObject* caller = nullptr;
    if (known.own) {
      caller = PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_back");
      if (caller == Py_None) Py_CLEAR(caller);
      PyErr_Clear();
    } else {
      origin = known.origin;
      origin.line = PyFrame_GetLineNumber(frame);
    }
    Py_DECREF(reinterpret_cast<PyObject*>(frame));
    frame = reinterpret_cast<PyFrameObject*>(caller);
  }
  return origin;
}

// Set in a child of fork(). Asking for the process's number instead would be a system call in every
// call of the module: a quarter of what schedule() costs.
bool forked = false;
[[maybe_unused]] const int told_of_forks =
    ::pthread_atfork(nullptr, nullptr, [] { forked = true; });

// Whether this is Python's main thread, the last one to run Python. It need not be the thread that
// imported the module.
bool on_main_thread() {
  static const auto main = [] {
    const nb::object thread = nb::module_::import_("threading").attr("main_thread")();
    return nb::cast<std::uintptr_t>(thread.attr("ident"));
  }();
  return reinterpret_cast<std::uintptr_t>(reinterpret_cast<void*>(::pthread_self())) == main;
}

// ---- the end of the interpreter ----

// The end waits this long for threads that are in a call.
constexpr auto kPatience = std::chrono::seconds(1);

struct Ends {
  std::atomic<bool> begun{false};
  std::atomic<int> coming{0};   // threads that wait for the GIL
  std::atomic<int> within{0};   // threads of C++ or of Python's that run Python within C++
  std::atomic<int> outside{0};  // Python's threads that are in a call without the GIL
};
Ends& ends() {
  static Ends& only = *new Ends;
  return only;
}

// Takes the GIL by `take`, unless the end has begun. A thread is counted before it looks, so that
// the end waits for it or is seen by it.
template <typename Take>
auto coming_back(Take take) {
  if (on_main_thread()) return take();
  ++ends().coming;
  if (ends().begun) {
    --ends().coming;
    if (outside_calls > 0) --ends().outside;
    for (;;) ::pause();
  }
  const auto taken = take();
  --ends().coming;
  return taken;
}

}  // namespace

void take_origins_from_python(const std::string& package) {
  package_folder() = package;
  set_origin_source(python_origin);
  on_main_thread();  // asked for the first time with the GIL
}

bool has_gil() { return !gil_released && PyGILState_GetThisThreadState() != nullptr; }

Released::State::State() : look_up(look_for_signals) {}

Released::Released() {
  require_own_process();
  drop_references();
  state_.emplace();
  gil_released = true;
}
Released::~Released() {
  state_.reset();
  gil_released = false;
}

LazilyReleased::LazilyReleased() : depth_(inside_calls) {
  look_up_.emplace([this] { look(); });
}
LazilyReleased::~LazilyReleased() {
  look_up_.reset();
  if (!gil_) return;
  gil_.reset();
  gil_released = false;
}
// A wait of Python code that this call has called is that code's own: it goes on with the GIL.
void LazilyReleased::look() {
  if (inside_calls == depth_ && !gil_) {
    gil_.emplace();
    gil_released = true;
  }
  if (inside_calls != depth_ && has_gil()) {
    const WithoutGil others;
  }
  look_for_signals();
}

Caller::Caller() : before_(std::exchange(caller, current_origin())) {}
Caller::~Caller() { caller = before_; }

bool is_tracing() { return traces > 0; }
Tracing::Tracing() { ++traces; }
Tracing::~Tracing() { --traces; }

Acquired::Acquired()
    : state_(coming_back([] { return PyGILState_Ensure(); })),
      before_(std::exchange(gil_released, false)) {
  ++inside_calls;
  if (!on_main_thread()) ++ends().within;
}
Acquired::~Acquired() {
  --inside_calls;
  if (!on_main_thread()) --ends().within;
  gil_released = before_;
  PyGILState_Release(state_);
}

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) {
  if (on_main_thread()) return;
  if (outside_calls++ == 0) ++ends().outside;
}
WithoutGil::~WithoutGil() {
  coming_back([this] {
    PyEval_RestoreThread(state_);
    return 0;
  });
  if (!on_main_thread() && --outside_calls == 0) --ends().outside;
}

bool stay_away_from_gil() {
  ends().begun = true;
  const WithoutGil others;
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  const auto busy = [] { return ends().coming > 0 || ends().within > 0 || ends().outside > 0; };
  while (busy() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return !busy();
}

Reference::~Reference() {
  if (object_ == nullptr) return;
  const std::lock_guard hold(queue().mutex);
  queue().dropped.push_back(object_);
  queue().any = true;
}

void drop_references() {
  if (!queue().any.load(std::memory_order_relaxed)) return;
  std::vector<PyObject*> dropped;
  {
    const std::lock_guard hold(queue().mutex);
    dropped.swap(queue().dropped);
    queue().any = false;
  }
  for (PyObject* object : dropped) Py_DECREF(object);
}

bool in_own_process() { return !forked; }

namespace {
std::atomic<int> living{0};
}  // namespace

void count_living(int change) { living += change; }

// Handlers run in the reverse order of their registration: this one before the destructors of all
// libraries that were loaded earlier.
void leave_without_destructors() {
  ::on_exit(
      [](int status, void*) {
        if (living == 0) return;
        std::fflush(stdout);
        ::_exit(status);
      },
      nullptr);
}

void require_own_process() {
  if (!in_own_process())
    throw FailedPreconditionError(
        "this process was forked from one that uses Cairn, whose threads it does not have: start "
        "processes by multiprocessing's \"spawn\" or \"forkserver\", or fork before importing "
        "cairn");
}

}  // namespace cairn::python
