// Running a job without servers: on replicas of this process, alone or in a group of processes.
//   Thread  one.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "tools/job/train/run_host.h"
#include "tools/job/train/train_setup.h"

namespace cairn::tools {

// The device of each replica of this process, by the job's cluster.device; logical CPUs where that
// says nothing. `worker`: the number of this process in its group.
//   Errors  NotFound: a GPU is asked for, and there is none, or not that one; says why.
std::vector<std::string> replica_devices(const Job& job, std::size_t worker = 0);

// Under one_device, mirrored or central_storage.
//   Errors  InvalidArgument: --kill, since there is no process to kill. Those of the run.
TrainedJob train_in_process(const TrainRequest& request, const RunHost& host);

// As one worker of the group that TF_CONFIG names; the chief writes checkpoints and the report. A
// group that was started again (CAIRN_RESTARTS) goes on from its newest checkpoint.
//   Errors  those of MultiWorkerMirroredStrategy and of the run.
TrainedJob train_as_worker(const TrainRequest& request, const RunHost& host);

}  // namespace cairn::tools
