// Running a job on ps and workers, of its own or given.
//   Thread  one.
#pragma once
#include "tools/job/train/run_host.h"
#include "tools/job/train/train_setup.h"

namespace cairn::tools {

// Starts ps and workers as processes of this machine, and ends them.
//   Errors  those of LocalCluster and of the run.
TrainedJob train_on_local_cluster(const TrainRequest& request, const RunHost& host);

// On the cluster that TF_CONFIG names.
//   Errors  those of the strategy and of the run.
TrainedJob train_on_given_cluster(const TrainRequest& request, const RunHost& host);

}  // namespace cairn::tools
