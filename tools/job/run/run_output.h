// RunOutput: where a run of a job shows itself. The commands show it on the terminal
// (progress_line.h); a program that trains by train_job() gets it by calls.
#pragma once
#include <cstdint>
#include <string>

namespace cairn::tools {

// The figures of a run at one moment. seconds_left below 0: not known yet.
struct Progress {
  std::int64_t step = 0, steps = 0;
  double examples_per_s = 0, loss = 0;
  std::string metric;  // the first of the last evaluation; empty: none yet
  double metric_value = 0;
  double staleness = 0;
  unsigned workers_up = 0, workers = 0, ps_up = 0, ps = 0;  // ps 0: there is no cluster to tell of
  unsigned replicas = 0;                                    // in step, instead of a cluster
  // Shares of the replicas' time: in collective calls, and there waiting for the slowest.
  double held = 0, waited = 0;
  std::string gpus;  // how busy and how full they are; empty: there are none
  double seconds_left = -1;
};

// Thread: any.
class RunOutput {
 public:
  virtual ~RunOutput() = default;
  // Whether enough time has passed since the last show().
  virtual bool due() const = 0;
  virtual void show(const Progress& progress) = 0;
  // A line about the run.
  virtual void say(const std::string& text) = 0;
  // A warning: a line without its end.
  virtual void warn(const std::string& text) = 0;
  // The reason why a run that has ended is incomplete: the command's exit status is then 1.
  virtual void fail(const std::string& text) = 0;
  // The first step is about to begin. An interrupt now leaves something worth saving.
  virtual void began() {}
  // Progress is not shown again.
  virtual void end() {}
  // Sends the process's log to this file while the run lasts; its usual place shows the output.
  virtual void send_log_to(const std::string& file) = 0;
};

}  // namespace cairn::tools
