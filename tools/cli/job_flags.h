// The flags of tools/job/train/train_flags.h on a command line.
#pragma once

namespace CLI {
class App;
}

namespace cairn::tools {

struct TrainRequest;

// The job, and the flags that `cairn train` and `cairn-coordinator` both have.
void add_job_flags(CLI::App& app, TrainRequest& request);
// Those of `cairn train` alone.
void add_cluster_flags(CLI::App& app, TrainRequest& request);

}  // namespace cairn::tools
