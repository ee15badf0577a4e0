// RunPace: how often a run reports its progress. ExamplesRate: the rate that it reports.
//   Thread  one.
#pragma once
#include <cstdint>

#include "core/base/clock.h"

namespace cairn {

// Once per second, and in the first ten seconds ten times per second, so that a short run has a
// curve too.
class RunPace {
 public:
  explicit RunPace(const Clock& clock = system_clock());
  // Whether the next report is due.
  bool due() const;
  void told() { last_at_ = clock_.now(); }

 private:
  const Clock& clock_;
  TimePoint began_, last_at_;
};

// Examples per second since the call before; since the one before that, if the last one was less
// than 50 ms ago, as may be at the end.
class ExamplesRate {
 public:
  // The rate of a run that has trained `examples` in `seconds` so far; NaN if no time has passed.
  double at(double seconds, std::int64_t examples);

 private:
  struct Moment {
    double seconds = 0;
    std::int64_t examples = 0;
  };
  Moment last_, before_last_;
};

}  // namespace cairn
