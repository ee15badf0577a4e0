// Jobs as a library: what `cairn train` does, in the process of a program.
//
//     tools::TrainRequest request{.job_file = "adult.toml"};
//     request.overrides.strategy.kind = "mirrored";
//     const tools::TrainedJob trained = tools::train_job(request);
//
// Strategies of one process train on this process's threads. Under parameter servers ps and workers
// are processes that the call starts and ends, and this process is their coordinator; under
// multi_worker_mirrored the workers are such processes, and this one supervises them.
//   Thread  any. Two runs at once need folders of their own.
#pragma once
#include <atomic>
#include <functional>
#include <string>

#include "tools/job/train/train_request.h"

namespace cairn::tools {

// The functions that a run calls while it lasts, on any thread and one at a time; they must not
// throw. Those with a line get it without its end. Empty functions are not called.
struct JobEvents {
  std::function<void(const std::string& line)> say;   // what `cairn train` prints
  std::function<void(const std::string& line)> warn;  // what it prints on standard error
  // The progress, several times a second.
  std::function<void(const std::string& line)> progress;
  std::function<void()> began;  // the first step is about to begin
  // The run saves and ends when this is the number of a signal, not 0. Null: it is never asked
  // to.
  const std::atomic<int>* interrupted = nullptr;
  // The folder of Cairn's programs; empty: that of the running one.
  std::string programs = "";
};

// The result of a run.
struct TrainedJob {
  std::string folder = "";       // of the run
  std::string checkpoints = "";  // the folder in which they are
  std::string report = "";       // JSON (docs/report.md)
  std::string model = "";        // the folder of the saved model; empty: there is none
  std::string failure = "";      // an error after the last step; empty: there was none
  int interrupted = 0;           // the signal that ended it early; 0: none did
  bool stopped = false;          // ended early by `cairn stop`
};

// Trains the job. While it waits it looks up (core/base/look_up.h): what that throws gives the run
// up, without a last checkpoint.
//   Errors  those of the job and its data, before anything is started. The first that a step or an
//           evaluation on the way raised, with the newest checkpoint. Cancelled: it was interrupted
//           before it began to train.
TrainedJob train_job(const TrainRequest& request, const JobEvents& events = {});

}  // namespace cairn::tools
