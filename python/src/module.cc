// The module `cairn._cairn`, on which the package's Python is built.
#include <nanobind/stl/string.h>

#include "arguments.h"
#include "core/base/log.h"
#include "forks.h"
#include "graphs.h"
#include "interpreter.h"
#include "monitor_object.h"
#include "owner.h"
#include "parts.h"

namespace cairn::python {

NB_MODULE(_cairn, m) {
  m.doc() = "Cairn's core: see the package `cairn`.";
  bind_errors(m);
  bind_values(m);
  bind_ops(m);
  bind_variables(m);
  bind_functions(m);
  bind_graphs(m);
  bind_gradient_ops(m);
  bind_data(m);
  bind_dataset_parts(m);
  bind_strategies(m);
  bind_cluster(m);
  bind_layers(m);
  bind_losses(m);
  bind_metrics(m);
  bind_optimizers(m);
  bind_callbacks(m);
  bind_monitors(m);
  bind_model(m);
  bind_saved_models(m);
  bind_jobs(m);
  log_to("", "python");  // on standard error, since programs print their own on the other
  m.def(
      "set_log_level",
      [](const std::string& least) {
        static constexpr std::pair<const char*, LogLevel> kLevels[] = {
            {"info", LogLevel::kInfo},
            {"warning", LogLevel::kWarning},
            {"error", LogLevel::kError},
            {"off", LogLevel::kOff}};
        for (const auto& [name, level] : kLevels)
          if (least == name) return set_log_level(level);
        throw InvalidArgumentError(
            str("a log level is \"info\", \"warning\", \"error\" or \"off\", not \"", least, "\""));
      },
      "least"_a,
      "Lines of Cairn's log below this are dropped.\n\n>>> cairn.set_log_level(\"warning\")");
  m.def(
      "log_to", [](const std::string& file) { log_to(file, "python"); }, "file"_a,
      "Cairn's log goes into a file, or to standard error if its name is empty.\n\n>>> "
      "cairn.log_to(\"\")");
  m.attr("_version") = CAIRN_VERSION;
  m.def("_take_origins", &take_origins_from_python, "folder"_a);
  // A child of fork() keeps what has threads in its parent, which is no leak.
  m.def("_leave_to_parent", [] { nb::set_leak_warnings(false); });
  // Before the interpreter ends: threads of the engine call into Python until then.
  m.def(
      "_close_all",
      [](bool threads_are_left) {
        // Daemon threads keep what they hold until the process is gone, which is no leak.
        if (threads_are_left) nb::set_leak_warnings(false);
        // A strategy whose call a thread is in is left to the system.
        if (stay_away_from_gil()) close_all();
        drop_references();
      },
      "threads_are_left"_a);
  explain_arguments(m);
  leave_without_destructors();
}

}  // namespace cairn::python
