// Running a job without servers: on replicas of this process, alone or in a group of processes.
//   Thread  one.
#pragma once
#include "tools/train_setup.h"

namespace cairn::tools {

// Under one_device, mirrored or central_storage. Returns the exit status.
//   Errors  InvalidArgument: --kill, since there is no process to kill. Those of the run.
int train_in_process(const TrainRequest& request, const PreparedJob& prepared);

// Under multi_worker_mirrored: starts the job's workers as processes of this machine, each of which
// is a cairn-coordinator that calls train_as_worker(), and starts them again when one of them dies.
// Returns the exit status.
//   Errors  those of WorkerProcesses.
int train_on_workers(const TrainRequest& request, const Job& job);

// As one worker of the group that TF_CONFIG names; the chief writes checkpoints and the report. A
// group that was started again (CAIRN_RESTARTS) goes on from its newest checkpoint.
//   Errors  those of MultiWorkerMirroredStrategy and of the run.
int train_as_worker(const TrainRequest& request);

}  // namespace cairn::tools
