// `cairn train JOB.toml` on a cluster of its own, and `cairn-coordinator JOB.toml` on one that was
// started before: jobs on the terminal, until a signal ends them.
#pragma once

namespace CLI {
class App;
}

namespace cairn::tools {

struct TrainRequest;

// Adds the subcommand; when it is chosen it runs in CLI's callback and leaves the process's exit
// status in `status`.
void add_train_command(CLI::App& app, int& status);
// Runs the job on the cluster that TF_CONFIG names. The exit status.
int run_coordinator(const TrainRequest& request);

}  // namespace cairn::tools
