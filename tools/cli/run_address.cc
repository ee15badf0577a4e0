#include "tools/cli/run_address.h"

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "rpc/server/token.h"
#include "tools/launch/run_folder.h"

namespace cairn::tools {
namespace {

// A user who names no run means the newest one, ended or not.
std::string newest_cluster() {
  const std::string newest = newest_run(
      [](const std::string& folder) { return system_disk().exists(folder + "/cluster.json"); });
  if (newest.empty())
    throw NotFoundError(
        "there is no run below ./runs: give the run's folder, or --address of its chief");
  return newest;
}

}  // namespace

void add_run_flags(CLI::App& command, RunChoice& choice) {
  command.add_option("dir", choice.dir, "The run's folder; by default the newest below runs/");
  command.add_option("--address", choice.address, "The chief's address, instead of a folder");
  command.add_option("--cluster-id", choice.cluster, "With --address: the cluster's id");
  command.add_option("--token-file", choice.token_file,
                     "With --address: the file that holds the token");
}

// An address needs no folder: the run may be on another machine. A folder says everything else. If
// its run has ended, that is no error here: `cairn status` reports the end.
RunAddress find_run(const RunChoice& choice) {
  RunAddress run;
  run.coordinator = {choice.address, choice.cluster, ""};
  if (!choice.token_file.empty()) run.coordinator.token = rpc::read_token(choice.token_file);
  if (!choice.address.empty()) return run;
  run.dir = choice.dir.empty() ? newest_cluster() : choice.dir;
  const std::string file = run.dir + "/cluster.json";
  run.description = parse_json(system_disk().read(file), file);
  run.running = run.description.value("running", false);
  if (!run.running) return run;
  run.coordinator.cluster = run.description.value("cluster_id", choice.cluster);
  const std::string token = run.description.value("token_file", "");
  run.coordinator.token = token.empty() ? rpc::token_of_environment() : rpc::read_token(token);
  for (const auto& task : run.description["tasks"])
    if (task.value("role", "") == "chief") run.coordinator.address = task.value("address", "");
  return run;
}

RunAddress find_running(const RunChoice& choice) {
  RunAddress run = find_run(choice);
  if (!run.running) throw FailedPreconditionError(ended_text(run));
  return run;
}

void require_coordinator(const RunAddress& run, const std::string& cure) {
  if (!run.coordinator.address.empty()) return;
  throw FailedPreconditionError(str("the run in ", run.dir, " has no coordinator to ask: ", cure));
}

// The number may be that of another process by now, if the run was killed: it counts only if it is
// a program of ours.
pid_t process_of(const RunAddress& run) {
  const Json& all = run.description;
  const auto pid = all.value("supervisor_pid", all.value("coordinator_pid", std::int64_t{-1}));
  const std::string name = str("/proc/", pid, "/comm");
  if (pid <= 0 || !system_disk().exists(name) || !system_disk().read(name).starts_with("cairn"))
    return -1;
  return static_cast<pid_t>(pid);
}

std::string ended_text(const RunAddress& run) {
  const std::string logs = run.dir + "/logs";
  return str("the run in ", run.dir, " has ended",
             system_disk().exists(logs) ? "; its logs are in " + logs : "");
}

}  // namespace cairn::tools
