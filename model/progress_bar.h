// ProgressBar: the callback that shows how far an epoch has come.
//
//   120/469 [=======>......................]  2.4 s left  loss 0.4123  accuracy 0.8571
#pragma once
#include <cstdio>
#include <string>

#include "core/base/clock.h"
#include "model/callback.h"

namespace cairn {

struct ProgressBarOptions {
  std::FILE* out = nullptr;  // where to draw; nullptr: standard output
  bool always = false;       // also where that is no terminal
  // No more often than so.
  Duration every = std::chrono::milliseconds(100);
};

// A line that is redrawn in place, and erased at the end of the epoch before fit() prints its own.
// Nothing is drawn if `out` is not a terminal. Where several processes train together, the chief
// draws it.
//   Cost  the results of all metrics whenever it is drawn.
class ProgressBar final : public Callback {
 public:
  explicit ProgressBar(ProgressBarOptions options = {});
  void on_epoch_begin(TrainingRun& run, std::int64_t epoch) override;
  void on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs& logs) override;
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override;
  void on_train_end(TrainingRun& run, const Logs& logs) override;
  bool wants_batch_logs() const override;

 private:
  void wipe();

  std::FILE* out_;
  const bool terminal_;
  const Duration every_;
  bool drawn_ = false;
  TimePoint began_{}, drawn_at_{};
};

// The line for `step` of `steps`, begun `seconds` ago.
std::string progress_bar_text(std::int64_t step, std::int64_t steps, double seconds,
                              const Logs& logs);

}  // namespace cairn
