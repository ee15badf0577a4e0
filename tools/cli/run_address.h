// Which running program a command means: a run's folder, the newest run, or an address. Shared by
// `cairn status`, `stop` and `ckpt save`.
#pragma once
#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <string>

#include "coordinator/engine/control_server.h"
#include "core/base/json.h"

namespace cairn::tools {

// The choice of a run that the command line made.
struct RunChoice {
  std::string dir;                                     // of the run; empty: the newest below runs/
  std::string address, cluster = "cairn", token_file;  // of its chief, instead of a folder
};
// Adds DIR, --address, --cluster-id and --token-file.
void add_run_flags(CLI::App& command, RunChoice& choice);

// The run that find_run() found.
struct RunAddress {
  std::string dir;                    // empty: an address was given
  Json description = Json::object();  // the folder's cluster.json
  bool running = true;
  // Its address is empty in a run that has none: one process, or a group of workers.
  ControlAddress coordinator;
};
// Finds the run, ended or not.
//   Errors  NotFound: there is no such run. Those of reading its files.
RunAddress find_run(const RunChoice& choice);
// The same, for commands that talk to it.
//   Errors  also FailedPrecondition: it has ended.
RunAddress find_running(const RunChoice& choice);
// For commands that only a coordinator can answer.
//   Errors  FailedPrecondition: the run has none; says what to do instead (`cure`).
void require_coordinator(const RunAddress& run, const std::string& cure);
// The process that answers for a run without a coordinator; -1: it is there no more.
pid_t process_of(const RunAddress& run);
// A sentence for people: that it has ended, and where its logs are, if there are any.
std::string ended_text(const RunAddress& run);

}  // namespace cairn::tools
