// The request goes to the coordinator and not to a process as a signal: it works on a cluster of
// other machines too, and the answer says when the run has ended.
#include "tools/stop_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "core/base/disk.h"
#include "storage/checkpoint_folder.h"
#include "tools/run_address.h"

namespace cairn::tools {
namespace {

struct StopRequest {
  RunChoice run;
  double wait_seconds = 600;
};

int stop(const StopRequest& request) {
  const RunAddress run = find_running(request.run);
  ask_stop(run.coordinator, std::chrono::duration_cast<Duration>(
                                std::chrono::duration<double>(request.wait_seconds)));
  // The newest checkpoint is looked up in the run's own folder; a run that saves elsewhere has none
  // there, and the line goes without it.
  std::string newest;
  if (!run.dir.empty())
    if (auto latest = storage::CheckpointFolder(system_disk(), run.dir + "/checkpoints").latest())
      newest = "; its newest checkpoint is " + latest->path;
  const std::string what =
      run.dir.empty() ? "the program at " + run.coordinator.address : "the run in " + run.dir;
  std::printf("%s has ended%s\n", what.c_str(), newest.c_str());
  return 0;
}

}  // namespace

void add_stop_command(CLI::App& app, int& status) {
  auto request = std::make_shared<StopRequest>();
  CLI::App* command =
      app.add_subcommand("stop", "End a running training: it saves a checkpoint first");
  add_run_flags(*command, request->run);
  command->add_option("--wait", request->wait_seconds, "Seconds to wait until it has ended")
      ->capture_default_str();
  command->callback([request, &status] { status = stop(*request); });
}

}  // namespace cairn::tools
