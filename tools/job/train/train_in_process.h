// Running a job without servers: on replicas of this process, alone or in a group of processes.
//   Thread  one.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "tools/job/train/train_setup.h"

namespace cairn::tools {

// The device of each replica of this process, by the job's cluster.device; logical CPUs where that
// says nothing. `worker`: the number of this process in its group.
//   Errors  NotFound: a GPU is asked for, and there is none, or not that one; says why.
std::vector<std::string> replica_devices(const Job& job, std::size_t worker = 0);

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
