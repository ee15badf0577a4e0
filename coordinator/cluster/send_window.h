// SendWindow: how many closures to have at a lane, computing and waiting.
//
// Too few and the lane idles while an answer and the next closure travel; too many and they wait
// behind a slow lane while others are idle, and have to run again if it dies. So: those that
// overlap, one more, and what the lane gets done in the time by which the coordinator may be late.
// How much that is, its answers show: the time between them while it was busy, the newest counting
// most. Thread: the engine's own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/clock.h"

namespace cairn {

class SendWindow {
 public:
  static constexpr Duration kAhead = std::chrono::milliseconds(30);

  SendWindow() = default;
  SendWindow(std::size_t pipeline_depth, std::size_t most)
      : least_(std::min(pipeline_depth + 1, most)), most_(most), size_(least_) {}

  // A closure was sent to the lane while it had none.
  void began(TimePoint now) { since_ = now; }
  void answered(TimePoint now) {
    busy_ = busy_ * kKept + std::chrono::duration<double>(now - since_).count();
    answers_ = answers_ * kKept + 1;
    since_ = now;
    const double ahead = std::chrono::duration<double>(kAhead).count() * answers_;
    const auto room = static_cast<double>(most_ - least_);
    size_ = least_ + static_cast<std::size_t>(ahead >= room * busy_ ? room : ahead / busy_);
  }

  std::size_t size() const { return size_; }

 private:
  static constexpr double kKept = 31.0 / 32;  // answers come in groups: a few of those count
  std::size_t least_ = 1, most_ = 1, size_ = 1;
  TimePoint since_{};  // the lane's last answer, or when it was sent what it is busy with
  double busy_ = 0, answers_ = 0;
};

}  // namespace cairn
