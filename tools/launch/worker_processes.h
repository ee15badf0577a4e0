// WorkerProcesses: one program as every worker of a multi-worker group, as processes of this
// machine: what MultiWorkerMirroredStrategy wants of its surroundings.
//
//   Environment  each process gets the TF_CONFIG {"cluster": {"worker": [...]}} with its own task,
//                CAIRN_CLUSTER_ID, CAIRN_TOKEN_FILE, CAIRN_TRANSPORT, CAIRN_RUN_DIR, and
//                CAIRN_RESTARTS: how often the group was started again; CAIRN_DATA_SERVICE, where
//                there is one, whose processes are brought back one by one. Worker 0 is the chief.
//                It has our terminal; the others write to RUN_DIR/logs/worker-N.log.
//   Deaths       A group cannot go on without one of its workers. If one ends with an error, the
//                others end by themselves, or are ended after a while; then all are started again
//                at their old addresses, and the program goes on from the checkpoint that it
//                restores.
//   Bounds       Not started again: a group that has been `restarts_max` times; one that has ended
//                three times in a row within ten seconds of its start; one of which a worker ended
//                by itself that early, with an exit status, since it would do so again.
//   Signals      SIGINT, SIGTERM and SIGHUP are passed on, and then nothing is started again. The
//                third one kills.
//   Thread       the main one, before the process has other threads: it blocks signals. Any, if
//                WorkerProcessesOptions::interrupted is given.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/launch/kill_plan.h"

namespace cairn::tools {

struct WorkerProcessesOptions {
  int workers = 2;
  std::vector<std::string> program;  // with its arguments
  std::string transport = "auto";    // "auto", "tcp", "unix"
  std::string dir;                   // of this run; "": a new one under runs/
  std::string token;                 // "": a random one
  int data_workers = 0;              // of a data service, beside a dispatcher; 0: there is none
  std::string programs;              // the folder of cairn-data; "": that of the running program
  int restarts_max = 10;             // kills that were planned do not count
  std::vector<Kill> kills;           // of workers, after a time
  std::string speaker = "cairn up";  // prefix of the lines on standard error
  // In a program that has other things to do: signals stay its own, the group is asked to end when
  // this number is not 0, and the chief writes to a log as the others do. run() looks up
  // (core/base/look_up.h). Null: see Signals, above.
  const std::atomic<int>* interrupted = nullptr;
  // Gets the lines instead of standard error.
  std::function<void(const std::string&)> say;
};

class WorkerProcesses {
 public:
  // Reserves addresses and writes the folder; starts nothing.
  //   Errors  InvalidArgument: a count, the transport, a kill. FailedPrecondition: another run uses
  //           the folder. The disk's.
  explicit WorkerProcesses(WorkerProcessesOptions options);
  ~WorkerProcesses();
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  const std::string& dir() const;
  // Returns when the group has ended for good: 0 if every worker ended with 0, else, as a shell has
  // it, the status of the worker whose end was the cause; if it was asked to end, the chief's.
  //   Errors  NotFound, PermissionDenied: the program cannot be started.
  int run();

 private:
  class Group;
  std::unique_ptr<Group> group_;
};

}  // namespace cairn::tools
