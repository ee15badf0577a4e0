// The parts of callbacks and training loops of one's own: monitors, plateaus, event files.
#include "model/monitor.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "callbacks.h"
#include "fields.h"
#include "model/callbacks.h"
#include "model/progress_bar.h"
#include "model/writers/event_file.h"
#include "monitor_object.h"
#include "nn/metrics/metrics.h"
#include "values.h"

namespace cairn::python {
namespace {

MonitorMode mode_of(const std::string& word) {
  return value_of_word<MonitorMode>(
      "mode", word,
      {{"auto", MonitorMode::kAuto}, {"min", MonitorMode::kMin}, {"max", MonitorMode::kMax}});
}
nn::Direction direction_of(const std::string& word) {
  return value_of_word<nn::Direction>("direction", word,
                                      {{"unknown", nn::Direction::kUnknown},
                                       {"rises", nn::Direction::kRises},
                                       {"falls", nn::Direction::kFalls}});
}
std::string text_of(Monitor::Verdict verdict) {
  return word_of(verdict, Words<Monitor::Verdict>{{"better", Monitor::Verdict::kBetter},
                                                  {"no_better", Monitor::Verdict::kNoBetter},
                                                  {"no_number", Monitor::Verdict::kNoNumber},
                                                  {"seen", Monitor::Verdict::kSeen}});
}

Logs logs_of(const std::map<std::string, double>& given) {
  Logs logs;
  for (const auto& [name, value] : given) logs.set(name, value);
  return logs;
}

void bind_monitor(nb::module_& m) {
  using Memory = Monitor::Memory;
  FieldsOf<Memory>(m, "MonitorMemory", R"(The state of a Monitor, to go on after a restart.

>>> cairn.MonitorMemory(best=0.9, in_vain=2).in_vain
2)")
      .add("best", &Memory::best, "The best value.")
      .add("best_at", &Memory::best_at, "Its moment.")
      .add("last_at", &Memory::last_at, "The moment of the last value.")
      .add("in_vain", &Memory::in_vain, "Values in a row that were no better.")
      .options();
  nb::class_<Monitor>(m, "Monitor", R"(Whether a figure still gets better.

>>> monitor = cairn.Monitor("loss", "min", patience=2)
>>> monitor.begin("falls")
>>> [monitor.take(value) for value in (3.0, 2.0, 2.5, 2.1)], monitor.out_of_patience
(['better', 'better', 'no_better', 'no_better'], True))")
      .def(
          "__init__",
          [](Monitor* self, std::string name, const std::string& mode, double min_delta,
             std::int64_t patience, std::optional<double> baseline) {
            Patience wait{.values = patience};
            if (baseline) wait.baseline = *baseline;
            new (self) Monitor(std::move(name), mode_of(mode), min_delta, wait);
          },
          "name"_a, "mode"_a = "auto", "min_delta"_a = 0.0, "patience"_a = 0,
          "baseline"_a = nb::none())
      .def(
          "begin",
          [](Monitor& of, const std::string& direction, const std::string& watcher) {
            of.begin(direction_of(direction), watcher);
          },
          "direction"_a = "unknown", "watcher"_a = "Monitor",
          "Forgets all values. direction: \"rises\" or \"falls\" as a model gets better, for the "
          "mode \"auto\".")
      .def(
          "take",
          [](Monitor& of, double value, std::optional<std::int64_t> at) {
            return text_of(at ? of.take(value, *at) : of.take(value));
          },
          "value"_a, "at"_a = nb::none(),
          "The next value, of a moment: \"better\", \"no_better\", \"no_number\" or \"seen\".")
      .def(
          "of",
          [](const Monitor& of, const std::map<std::string, double>& logs) {
            return of.of(logs_of(logs));
          },
          "logs"_a, "The value of the logs.")
      .def_prop_ro("complaint", &Monitor::complaint,
                   "The warning about the first value that is no number.")
      .def_prop_ro("out_of_patience", &Monitor::out_of_patience)
      .def("wait_anew", &Monitor::wait_anew, "Begins to count anew.")
      .def_prop_ro("name", &Monitor::name)
      .def_prop_ro("best", &Monitor::best)
      .def_prop_ro("best_at", &Monitor::best_at)
      .def_prop_ro("in_vain", &Monitor::in_vain)
      .def_prop_ro("memory", &Monitor::memory)
      .def("go_on", &Monitor::go_on, "memory"_a, "Goes on from an earlier monitor's memory.");
}

void bind_plateau(nb::module_& m) {
  nb::class_<PlateauRule>(m, "PlateauRule", R"(When a learning rate is to be lowered.

>>> rule = cairn.PlateauRule("loss", factor=0.5, patience=1)
>>> rule.begin("falls")
>>> [rule.lower(value, [0.1]) for value in (2.0, 2.0)]
[[0.1], [0.05]])")
      .def(
          "__init__",
          [](PlateauRule* self, std::string monitor, double factor, std::int64_t patience,
             const std::string& mode, double min_delta, std::int64_t cooldown, double min_lr) {
            new (self) PlateauRule({.monitor = std::move(monitor),
                                    .factor = factor,
                                    .patience = patience,
                                    .mode = mode_of(mode),
                                    .min_delta = min_delta,
                                    .cooldown = cooldown,
                                    .min_lr = min_lr});
          },
          "monitor"_a = "val_loss", nb::kw_only(), "factor"_a = 0.1, "patience"_a = 10,
          "mode"_a = "auto", "min_delta"_a = 1e-4, "cooldown"_a = 0, "min_lr"_a = 0.0)
      .def(
          "begin",
          [](PlateauRule& of, const std::string& direction) { of.begin(direction_of(direction)); },
          "direction"_a = "unknown", "Begins anew.")
      .def(
          "lower",
          [](PlateauRule& of, double value, std::vector<double> rates) {
            of.lower(value, rates);
            return rates;
          },
          "value"_a, "rates"_a, "Takes a value, and gives the rates for the next steps.")
      .def_prop_ro("monitor", &PlateauRule::monitor)
      .def("state", &PlateauRule::state, "Its memory as text.")
      .def("restore_state", &PlateauRule::restore_state, "saved"_a);
}

void bind_event_file(nb::module_& m) {
  nb::class_<EventFile>(m, "EventFile", R"(Figures of a program of one's own for TensorBoard.

>>> import tempfile
>>> events = cairn.EventFile(tempfile.mkdtemp())
>>> events.scalar("loss", 0.5, step=1)
>>> events.flush())")
      .def(
          "__init__",
          [](EventFile* self, const std::string& folder, std::int64_t first_step) {
            new (self) EventFile(folder, first_step);
          },
          "folder"_a, "first_step"_a = 0)
      .def(
          "scalar",
          [](EventFile& of, const std::string& tag, double value, std::int64_t step) {
            of.scalar(tag, value, step);
          },
          "tag"_a, "value"_a, "step"_a)
      .def(
          "histogram",
          [](EventFile& of, const std::string& tag, ArrayLike values, std::int64_t step,
             int buckets) {
            const Tensor all = cast(Array(values), DType::kFloat32).eval();
            of.histogram(tag, all.values<float>(), step, buckets);
          },
          "tag"_a, "values"_a, "step"_a, "buckets"_a = 30)
      .def(
          "text",
          [](EventFile& of, const std::string& tag, const std::string& text, std::int64_t step) {
            of.text(tag, text, step);
          },
          "tag"_a, "text"_a, "step"_a, "Markdown.")
      .def("graph", &EventFile::graph, "graph"_a, "The picture of a recorded function.")
      .def("flush", &EventFile::flush)
      .def_prop_ro("path", &EventFile::path);
}

}  // namespace

void bind_monitors(nb::module_& m) {
  bind_monitor(m);
  bind_plateau(m);
  bind_event_file(m);
  m.def(
      "progress_bar_text",
      [](std::int64_t step, std::int64_t steps, double seconds,
         const std::map<std::string, double>& logs) {
        return progress_bar_text(step, steps, seconds, logs_of(logs));
      },
      "step"_a, "steps"_a, "seconds"_a, "logs"_a,
      "A line that shows how far an epoch has come.\n\n>>> \"loss\" in "
      "cairn.progress_bar_text(5, 10, 1.0, {\"loss\": 0.5})\nTrue");
}

}  // namespace cairn::python
