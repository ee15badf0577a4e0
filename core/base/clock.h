// The seam through which everything that waits or stamps learns the time, so that a simulated
// cluster owns it.
#pragma once
#include <chrono>
#include <cstdint>

namespace cairn {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Thread: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;  // monotonic; for intervals
  // since 1970 UTC; for people and file names only, it may jump
  virtual std::int64_t wall_microseconds() const = 0;
};

const Clock& system_clock();

// Stands still until it is told to move. Thread: one.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  std::int64_t wall_microseconds() const override {
    return wall_us_ +
           std::chrono::duration_cast<std::chrono::microseconds>(now_.time_since_epoch()).count();
  }
  void advance(Duration by) { now_ += by; }
  void jump_wall(Duration by) {
    wall_us_ += std::chrono::duration_cast<std::chrono::microseconds>(by).count();
  }

 private:
  TimePoint now_{};
  std::int64_t wall_us_ = 1'700'000'000'000'000;
};

}  // namespace cairn
