// `cairn train JOB.toml` on a cluster of its own, and `cairn-coordinator JOB.toml` on one that was
// started before.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace cairn::tools {

struct TrainRequest;

// Adds the subcommand; when it is chosen it runs in CLI's callback and leaves the process's exit
// status in `status`.
void add_train_command(CLI::App& app, int& status);
// Runs the job on the cluster that TF_CONFIG names. The exit status.
int train_on_given_cluster(const TrainRequest& request);

}  // namespace cairn::tools
