// Monitor: whether a number that is watched gets better, and for how long it has not. One rule for
// all its users: callbacks of Model::fit() by epochs, and `cairn train` by evaluations.
//
//   Direction   the metric's own (nn::Metric::direction()); a loss falls. It is never guessed from
//               a name: where the metric says nothing, a mode is asked for.
//   Better      by more than min_delta than the best so far.
//   Patience    counts the values in a row that are no better.
//   NaN         is no number: it counts neither as better nor as worse, and is reported once.
//   Thread      one.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "model/logs.h"

namespace cairn {

namespace nn {
enum class Direction : std::uint8_t;
}

enum class MonitorMode : std::uint8_t { kAuto, kMin, kMax };

class TrainingRun;

// How many values in a row may be no better.
struct Patience {
  std::int64_t values = 0;  // 0 is as good as 1
  // A better value ends the wait only if it is better than this one, too. NaN: any does.
  double baseline = std::numeric_limits<double>::quiet_NaN();
};

class Monitor {
 public:
  //   Errors  InvalidArgument: `min_delta` is below 0.
  Monitor(std::string name, MonitorMode mode, double min_delta = 0, Patience patience = {});

  // Forgets all values. With MonitorMode::kAuto the number gets better in that direction.
  // `watcher`: for errors, who watches it.
  //   Errors  InvalidArgument: neither the mode nor the direction says which way that is.
  void begin(nn::Direction direction, const std::string& watcher);

  // kSeen: a value of this moment, or of a later one, was taken before.
  enum class Verdict : std::uint8_t { kBetter, kNoBetter, kNoNumber, kSeen };
  // Takes the next value, which becomes the best if it is better.
  Verdict take(double value);
  // The same with the value's moment, an epoch or a step. Moments ascend.
  Verdict take(double value, std::int64_t at);
  // The same with the value of the logs. Warns in the log the first time that it is no number.
  //   Errors  those of of().
  Verdict take(const Logs& logs, std::optional<std::int64_t> at = std::nullopt);
  // The warning about the value that was taken last, if it is the first that is no number; else
  // empty.
  const std::string& complaint() const { return complaint_; }

  // Whether as many values in a row as there is patience for were no better.
  bool out_of_patience() const {
    return memory_.in_vain > 0 && memory_.in_vain >= patience_.values;
  }
  // Begins to count anew how many values are no better.
  void wait_anew() { memory_.in_vain = 0; }

  // Whether there is a value after this epoch: false where the validation, whose it is, follows
  // other epochs (FitOptions::validation_freq). Such an epoch does not count.
  bool is_due(const TrainingRun& run, const Logs& logs) const;
  // The value of the logs.
  //   Errors  InvalidArgument: the logs do not have it.
  double of(const Logs& logs) const;
  const std::string& name() const { return name_; }
  double best() const { return memory_.best; }  // infinite, the worst there is, before the first
  std::int64_t best_at() const { return memory_.best_at; }  // its moment; 0 before the first
  std::int64_t in_vain() const { return memory_.in_vain; }

  // The state that is kept to go on after a restart.
  struct Memory {
    double best = 0;
    std::int64_t best_at = 0, last_at = -1;  // the moments of the best and of the last value
    std::int64_t in_vain = 0;                // values in a row that were no better
  };
  const Memory& memory() const { return memory_; }
  void go_on(const Memory& memory) { memory_ = memory; }

 private:
  bool is_better(double value, double other) const;

  std::string name_;
  MonitorMode mode_;
  double min_delta_;
  Patience patience_;
  Memory memory_;
  bool rises_ = false, told_ = false;
  std::string complaint_;
};

}  // namespace cairn
