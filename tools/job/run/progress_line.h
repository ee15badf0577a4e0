// ProgressLine: how a long run shows its progress: as one live line on a terminal, and as a plain
// line now and then elsewhere, so that a log file stays readable.
#pragma once
#include <mutex>
#include <string>

#include "core/base/clock.h"

namespace cairn::tools {

// The figures of the line. seconds_left below 0: not known yet.
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

// The progress in at most `columns` characters: the least important parts are left out first, and
// what then does not fit is cut off.
std::string progress_text(const Progress& progress,
                          std::size_t columns = static_cast<std::size_t>(-1));

// Writes to standard output. If its reader is gone (a closed terminal, `| head`) and SIGPIPE is
// ignored, output is dropped silently.
//   Thread  any.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();   // end()
  bool due() const;  // enough time has passed since the last show
  void show(const Progress& progress);
  // A line of its own above the live one, in a job's words (job_words.h).
  void say(const std::string& text);
  // Leaves the terminal on a fresh line, below the live one.
  void end();

 private:
  const bool terminal_;
  // guards the two below and the terminal: a log line must not tear the live one
  mutable std::mutex mutex_;
  bool live_ = false;
  TimePoint last_{};
};

}  // namespace cairn::tools
