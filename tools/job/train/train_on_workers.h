// Running a job under multi_worker_mirrored: starts its workers as processes of this machine, each
// of which is a cairn-coordinator that calls train_as_worker(), and starts them again when one of
// them dies.
#pragma once
#include "tools/job/train/run_host.h"
#include "tools/job/train/train_setup.h"

namespace cairn::tools {

// On the terminal: the chief has it, and signals of this process are passed on. The exit status.
//   Errors  those of WorkerProcesses.
//   Thread  the main one, before the process has others.
int supervise_workers(const TrainRequest& request, const Job& job);

// In a program, whose signals stay its own: the chief writes to RUN_DIR/logs/worker-0.log.
//   Errors  those of WorkerProcesses. Aborted: the group has ended with an error; has the last
//           lines of that log.
//   Thread  any.
TrainedJob train_on_workers(const TrainRequest& request, const Job& job, const RunHost& host);

}  // namespace cairn::tools
