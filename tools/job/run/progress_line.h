// ProgressLine: how a long run shows its progress: as one live line on a terminal, and as a plain
// line now and then elsewhere, so that a log file stays readable.
#pragma once
#include <mutex>
#include <string>

#include "core/base/clock.h"
#include "tools/job/run/run_output.h"

namespace cairn::tools {

// The progress in at most `columns` characters: the least important parts are left out first, and
// what then does not fit is cut off.
std::string progress_text(const Progress& progress,
                          std::size_t columns = static_cast<std::size_t>(-1));

// Writes to standard output. If its reader is gone (a closed terminal, `| head`) and SIGPIPE is
// ignored, output is dropped silently.
//   Thread  any.
class ProgressLine final : public RunOutput {
 public:
  ProgressLine();
  ~ProgressLine() override;  // end()
  bool due() const override;
  void show(const Progress& progress) override;
  // A line of its own above the live one, in a job's words (job_words.h).
  void say(const std::string& text) override;
  // On standard error, as is.
  void warn(const std::string& text) override;
  // The same behind the program's name.
  void fail(const std::string& text) override;
  // Leaves the terminal on a fresh line, below the live one.
  void end() override;
  //   Errors  log_to()'s.
  void send_log_to(const std::string& file) override;

 private:
  const bool terminal_;
  // guards the two below and the terminal: a log line must not tear the live one
  mutable std::mutex mutex_;
  bool live_ = false;
  TimePoint last_{};
};

}  // namespace cairn::tools
