// Jobs in this process: what cairn/jobs.py is built on.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <type_traits>

#include "forks.h"
#include "interpreter.h"
#include "tools/job/spec/job_threads.h"
#include "tools/job/train/checkpoint_path.h"
#include "tools/job/train/run_curves.h"
#include "tools/job/train/train_flags.h"
#include "tools/job/train/train_job.h"

namespace cairn::python {
namespace {

// "--max-staleness" as a keyword.
std::string keyword_of(std::string flag) {
  flag.erase(0, 2);
  std::ranges::replace(flag, '-', '_');
  return flag;
}

template <typename Field>
struct IsOptional : std::false_type {};
template <typename Value>
struct IsOptional<std::optional<Value>> : std::true_type {};

// Sets the flags that keywords name.
class TakeKeywords {
 public:
  explicit TakeKeywords(nb::dict given) : given_(std::move(given)) {}

  template <typename Field>
  void operator()(const char* name, Field& field, const char*) const {
    const std::string keyword = keyword_of(name);
    if (!given_.contains(keyword.c_str())) return;
    const nb::object value = given_[keyword.c_str()];
    if constexpr (IsOptional<Field>::value)
      field = cast<typename Field::value_type>(keyword, value);
    else
      field = cast<Field>(keyword, value);
  }

 private:
  template <typename Value>
  static Value cast(const std::string& keyword, nb::handle value) {
    const bool threads = keyword == "shards" || keyword == "lanes";
    if constexpr (std::is_same_v<Value, int>)
      if (threads && nb::isinstance<nb::str>(value))
        return cast<int>(
            keyword,
            nb::int_(nb::str(tools::auto_as_number(nb::cast<std::string>(value)).c_str())));
    // A text such as "10%" may also be a number of steps.
    if constexpr (std::is_same_v<Value, std::string>)
      if (nb::isinstance<nb::int_>(value) && !nb::isinstance<nb::bool_>(value))
        return nb::cast<std::string>(nb::str(value));
    const bool number = std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>;
    Value made{};
    if ((number && nb::isinstance<nb::bool_>(value)) || !nb::try_cast(value, made))
      throw nb::type_error(str("train: ", keyword, " must be ", wanted<Value>(), ", got ",
                               nb::cast<std::string>(nb::repr(value)))
                               .c_str());
    return made;
  }
  template <typename Value>
  static const char* wanted() {
    if constexpr (std::is_same_v<Value, bool>) return "True or False";
    if constexpr (std::is_same_v<Value, std::string>) return "a str";
    if constexpr (std::is_floating_point_v<Value>) return "a number";
    if constexpr (std::is_unsigned_v<Value>) return "an int that is not negative";
    if constexpr (std::is_integral_v<Value>) return "an int";
    return "a list of str";
  }

  nb::dict given_;
};

// Collects what a run tells on any thread, until the thread that called train() passes it on to
// Python. No other thread takes the GIL.
class Told {
 public:
  explicit Told(nb::object listener) : listener_(std::move(listener)) {}

  void add(const char* what, const std::string& line) {
    std::lock_guard hold(mutex_);
    // Only the newest progress counts.
    if (!lines_.empty() && lines_.back().first == std::string("progress") &&
        what == lines_.back().first)
      lines_.pop_back();
    lines_.emplace_back(what, line);
  }
  // With the GIL.
  //   Errors  what the listener raises.
  void pass_on() {
    for (;;) {
      std::pair<std::string, std::string> next;
      {
        std::lock_guard hold(mutex_);
        if (lines_.empty()) return;
        next = std::move(lines_.front());
        lines_.pop_front();
      }
      listener_(next.first, next.second);
    }
  }

 private:
  const nb::object listener_;
  std::mutex mutex_;  // guards lines_
  std::deque<std::pair<std::string, std::string>> lines_;
};

// The first Ctrl-C after training has begun ends it in order; any other gives it up. It may come
// while the listener runs, which is Python.
void look_for_interrupt(Told& told, const std::atomic<bool>& began, std::atomic<int>& interrupted) {
  const Acquired here;
  try {
    told.pass_on();
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  } catch (const nb::python_error& error) {
    if (!began || interrupted != 0 || !error.matches(PyExc_KeyboardInterrupt)) throw;
    interrupted = SIGINT;
  }
}

// A run has threads and processes for as long as it lasts.
struct Living {
  Living() { count_living(1); }
  ~Living() { count_living(-1); }
  Living(const Living&) = delete;
  Living& operator=(const Living&) = delete;
};

nb::dict train(const std::string& job_file, const std::string& job_values, nb::dict keywords,
               const std::string& programs, nb::object listener) {
  require_own_process();
  tools::TrainRequest request;
  request.job_file = job_file;
  request.job_values = job_values;
  const TakeKeywords take(std::move(keywords));
  tools::for_each_job_flag(request, take);
  tools::for_each_cluster_flag(request, take);
  Told told(std::move(listener));
  std::atomic<bool> began = false;
  std::atomic<int> interrupted = 0;
  const tools::JobEvents events{
      .say = [&](const std::string& line) { told.add("say", line); },
      .warn = [&](const std::string& line) { told.add("warn", line); },
      .progress = [&](const std::string& line) { told.add("progress", line); },
      .began = [&] { began = true; },
      .interrupted = &interrupted,
      .programs = programs};
  tools::TrainedJob trained;
  try {
    trained = released([&] {
      const Living living;
      const LookUp look_up([&] { look_for_interrupt(told, began, interrupted); });
      return tools::train_job(request, events);
    });
  } catch (const Error&) {
    told.pass_on();  // what was said before it
    throw;
  }
  told.pass_on();
  if (trained.interrupted != 0) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    nb::raise_python_error();
  }
  nb::dict made;
  made["folder"] = trained.folder;
  made["checkpoints"] = trained.checkpoints;
  made["report"] = trained.report;
  made["model"] = trained.model;
  made["failure"] = trained.failure;
  made["stopped"] = trained.stopped;
  return made;
}

// The keywords of train(), with their flags' help.
std::vector<std::pair<std::string, std::string>> keywords_of_train() {
  std::vector<std::pair<std::string, std::string>> all;
  tools::TrainRequest request;
  const auto add = [&](const char* name, auto&, const char* help) {
    all.emplace_back(keyword_of(name), help);
  };
  tools::for_each_job_flag(request, add);
  tools::for_each_cluster_flag(request, add);
  return all;
}

// {curve: (steps, values)} of a run's folder.
nb::dict history_of(const std::string& folder) {
  nb::dict made;
  const tools::RunCurves read = tools::read_curves(folder);
  for (const tools::RunCurve& curve : read.curves) {
    nb::list steps, values;
    for (const auto& point : curve.points) {
      steps.append(point.step);
      values.append(point.value);
    }
    made[curve.what.c_str()] = nb::make_tuple(steps, values);
  }
  return made;
}

}  // namespace

void bind_jobs(nb::module_& m) {
  m.def("_train_job", &train, "job_file"_a, "job_values"_a, "keywords"_a, "programs"_a,
        "listener"_a,
        nb::sig("def _train_job(job_file: str, job_values: str, keywords: dict[str, typing.Any], "
                "programs: str, listener: collections.abc.Callable[[str, str], None]) -> "
                "dict[str, typing.Any]"));
  m.def("_train_keywords", &keywords_of_train);
  m.def("_run_history", &history_of, "folder"_a,
        nb::sig("def _run_history(folder: str) -> dict[str, tuple[list[float], list[float]]]"));
  m.def("_checkpoints_at", &tools::checkpoints_at, "folder"_a);
}

}  // namespace cairn::python
