// Monitor: whether a number that is watched gets better. One rule for all who watch: callbacks of
// Model::fit() by epochs, and `cairn train` by evaluations.
//
//   Direction   the metric's own (nn::Metric::direction()); a loss falls. It is never guessed from
//               a name: where the metric says nothing, a mode is asked for.
//   Better      by more than min_delta than the best so far.
//   NaN         is no number: it counts neither as better nor as worse, and is told once.
//   Thread      one.
#pragma once
#include <cstdint>
#include <string>

#include "model/logs.h"

namespace cairn {

namespace nn {
enum class Direction : std::uint8_t;
}

enum class MonitorMode : std::uint8_t { kAuto, kMin, kMax };

class TrainingRun;

class Monitor {
 public:
  //   Errors  InvalidArgument: `min_delta` is below 0.
  Monitor(std::string name, MonitorMode mode, double min_delta = 0);

  // Forgets the best. With MonitorMode::kAuto the number gets better in that direction. `watcher`:
  // for errors, who watches it.
  //   Errors  InvalidArgument: neither the mode nor the direction says which way that is.
  void begin(nn::Direction direction, const std::string& watcher);

  enum class Verdict : std::uint8_t { kBetter, kNoBetter, kNoNumber };
  // Takes the next value, which becomes the best if it is better.
  Verdict take(double value);
  // The same with the value of the logs. Warns in the log the first time that it is no number.
  //   Errors  those of of().
  Verdict take(const Logs& logs);
  // The warning about a value that is no number, the first time; later an empty text.
  std::string complaint();

  // Whether `value` is better than `other`, by more than min_delta.
  bool is_better(double value, double other) const;
  // Whether there is a value after this epoch: false where the validation, whose it is, follows
  // other epochs (FitOptions::validation_freq). Such an epoch does not count.
  bool is_due(const TrainingRun& run, const Logs& logs) const;
  // The value of the logs.
  //   Errors  InvalidArgument: the logs do not have it.
  double of(const Logs& logs) const;
  double best() const { return best_; }  // infinite, the worst there is, before the first
  void go_on(double best) { best_ = best; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  MonitorMode mode_;
  double min_delta_, best_ = 0;
  bool rises_ = false, told_ = false;
};

}  // namespace cairn
