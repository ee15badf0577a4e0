#include "model/monitor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "model/callback.h"
#include "nn/metrics/metrics.h"

namespace cairn {

Monitor::Monitor(std::string name, MonitorMode mode, double min_delta, Patience patience)
    : name_(std::move(name)), mode_(mode), min_delta_(min_delta), patience_(patience) {
  if (!(min_delta >= 0))
    throw InvalidArgumentError(str("min_delta must be at least 0, got ", min_delta));
}

void Monitor::begin(nn::Direction direction, const std::string& watcher) {
  if (mode_ == MonitorMode::kAuto && direction == nn::Direction::kUnknown)
    throw InvalidArgumentError(
        str(watcher, " watches \"", name_, "\", of which neither a metric nor a loss of the model ",
            "says whether it rises or falls as the model gets better: give `mode`, ",
            "MonitorMode::kMax or MonitorMode::kMin; a metric of your own says it by direction()"));
  rises_ = mode_ == MonitorMode::kMax ||
           (mode_ == MonitorMode::kAuto && direction == nn::Direction::kRises);
  const double infinity = std::numeric_limits<double>::infinity();
  memory_ = {.best = rises_ ? -infinity : infinity};
}

// As the reference has it: with a baseline, an improvement that stays short of it does not end the
// wait.
Monitor::Verdict Monitor::take(double value) {
  complaint_.clear();
  if (std::isnan(value)) {
    if (!std::exchange(told_, true))
      complaint_ = str("\"", name_, "\" is not a number (NaN): it counts neither as better nor as ",
                       "worse, here and whenever it is none again");
    return Verdict::kNoNumber;
  }
  ++memory_.in_vain;
  if (!is_better(value, memory_.best)) return Verdict::kNoBetter;
  memory_.best = value;
  const double baseline = patience_.baseline;
  if (std::isnan(baseline) || is_better(value, baseline)) memory_.in_vain = 0;
  return Verdict::kBetter;
}

Monitor::Verdict Monitor::take(double value, std::int64_t at) {
  complaint_.clear();
  if (at <= memory_.last_at) return Verdict::kSeen;
  memory_.last_at = at;
  const Verdict verdict = take(value);
  if (verdict == Verdict::kBetter) memory_.best_at = at;
  return verdict;
}

Monitor::Verdict Monitor::take(const Logs& logs, std::optional<std::int64_t> at) {
  const Verdict verdict = at ? take(of(logs), *at) : take(of(logs));
  if (!complaint_.empty()) log_warning("fit: ", complaint_);
  return verdict;
}

bool Monitor::is_better(double value, double other) const {
  return rises_ ? value - min_delta_ > other : value + min_delta_ < other;
}

bool Monitor::is_due(const TrainingRun& run, const Logs& logs) const {
  return logs.contains(name_) || std::ranges::count(run.log_names(), name_) == 0;
}

double Monitor::of(const Logs& logs) const {
  const auto found = logs.find(name_);
  if (found != logs.end()) return found->second;
  std::string names;
  for (const auto& [name, value] : logs) names += str(names.empty() ? "" : ", ", name);
  throw InvalidArgumentError(str("a callback monitors \"", name_, "\", and the logs have ", names));
}

}  // namespace cairn
