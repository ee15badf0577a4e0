// The request goes to the coordinator, where there is one, and not to a process as a signal: it
// works on a cluster of other machines too, and the answer says when the run has ended.
#include "tools/cli/stop_command.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "core/disk/disk.h"
#include "storage/checkpoint_folder.h"
#include "tools/cli/run_address.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {

struct StopRequest {
  RunChoice run;
  double wait_seconds = 600;
};

// A run without a coordinator is asked as Ctrl-C asks it; its process ends when it has saved.
void stop_process(const RunAddress& run, Duration limit) {
  const pid_t pid = process_of(run);
  const int ended = pid < 0 ? -1 : open_pidfd(pid);
  if (ended < 0)
    throw FailedPreconditionError(
        str("the run in ", run.dir, " was killed: its process is there no more"));
  ::kill(pid, SIGTERM);
  pollfd wait{.fd = ended, .events = POLLIN};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  const int found = ::poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(ms, 1 << 30)));
  ::close(ended);
  if (found == 0)
    throw DeadlineExceededError(str("the run in ", run.dir, " (process ", pid,
                                    ") has been told to end and is still at it: wait on, or end it "
                                    "with kill -9 ",
                                    pid));
}

int stop(const StopRequest& request) {
  const RunAddress run = find_running(request.run);
  const auto limit =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(request.wait_seconds));
  if (run.coordinator.address.empty())
    stop_process(run, limit);
  else
    ask_stop(run.coordinator, limit);
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
