// The seam through which everything that waits, or that stamps a time, learns the time, so that a
// simulated cluster can own it.
//
// Nothing outside of this seam reads a system clock to make a decision: a test that advances a
// ManualClock by an hour sees every deadline of that hour expire, in order, without waiting.
// Tracing (core/disk/trace.h) is the exception, since it decides nothing.
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
  // Monotonic: it never goes back, and its zero means nothing. For intervals and deadlines.
  virtual TimePoint now() const = 0;
  // Microseconds since 1970 UTC. If an operator sets the system's clock, it may jump either way, so
  // it is for people and file names only, never for an interval.
  virtual std::int64_t wall_microseconds() const = 0;
};

// The machine's own clocks. It lives as long as the process.
//   Cost  no system call: the kernel's vDSO answers in the process.
const Clock& system_clock();

// A clock for tests and the simulation. It moves only by advance(), and wall time moves with it;
// jump_wall() alone plays an operator who sets the system's clock.
//   Thread  one.
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
