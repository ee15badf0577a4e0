#include "tools/run_address.h"

#include <filesystem>

#include "core/disk.h"
#include "core/error.h"
#include "rpc/token.h"

namespace cairn::tools {
namespace {
namespace fs = std::filesystem;

// The newest run below runs/ : its name begins with the time of its start.
std::string newest_run() {
  std::string newest;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("runs", none))
    if (fs::exists(entry.path() / "cluster.json") && entry.path().string() > newest)
      newest = entry.path().string();
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

RunAddress find_run(const RunChoice& choice) {
  RunAddress run;
  run.coordinator = {choice.address, choice.cluster, ""};
  if (!choice.token_file.empty()) run.coordinator.token = rpc::read_token(choice.token_file);
  if (!choice.address.empty()) return run;
  run.dir = choice.dir.empty() ? newest_run() : choice.dir;
  const std::string file = run.dir + "/cluster.json";
  run.description = parse_json(system_disk().read(file), file);
  run.running = run.description.value("running", false);
  if (!run.running) return run;
  run.coordinator.cluster = run.description.value("cluster_id", choice.cluster);
  run.coordinator.token = rpc::read_token(run.description.value("token_file", ""));
  for (const auto& task : run.description["tasks"])
    if (task.value("role", "") == "chief") run.coordinator.address = task.value("address", "");
  return run;
}

RunAddress find_running(const RunChoice& choice) {
  RunAddress run = find_run(choice);
  if (!run.running)
    throw FailedPreconditionError(
        str("the run in ", run.dir, " has ended; its logs are in ", run.dir, "/logs"));
  return run;
}

}  // namespace cairn::tools
