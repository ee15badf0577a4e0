// Which running program a command means: a run's folder, the newest run, or an address.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "coordinator/control_server.h"
#include "core/base/json.h"

namespace cairn::tools {

struct RunChoice {
  std::string dir;                                     // of the run; empty: the newest below runs/
  std::string address, cluster = "cairn", token_file;  // of its chief, instead of a folder
};
// DIR, --address, --cluster-id and --token-file.
void add_run_flags(CLI::App& command, RunChoice& choice);

struct RunAddress {
  std::string dir;                    // empty: an address was given
  Json description = Json::object();  // the folder's cluster.json
  bool running = true;
  ControlAddress coordinator;
};
// Errors  NotFound: there is no such run. Those of reading its files.
RunAddress find_run(const RunChoice& choice);
// The same; FailedPrecondition: it has ended.
RunAddress find_running(const RunChoice& choice);
// For people: that it has ended, and where its logs are, if there are any.
std::string ended_text(const RunAddress& run);

}  // namespace cairn::tools
