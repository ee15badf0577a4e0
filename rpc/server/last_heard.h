// LastHeard: when the coordinator that a task works for last showed that it lives, known to all
// threads of the task's process.
//   Thread  any.
#pragma once
#include <atomic>

#include "core/base/clock.h"

namespace cairn::rpc {

class LastHeard {
 public:
  void note(TimePoint when) { when_.store(when, std::memory_order_relaxed); }
  TimePoint when() const { return when_.load(std::memory_order_relaxed); }

 private:
  std::atomic<TimePoint> when_{TimePoint::min()};
};

}  // namespace cairn::rpc
