// Flapping: how a task that comes and goes is told from one that is there.
//
// A task that is lost again and again, with no work done in between, is of no more use than one
// that stays away: it is dialled after longer and longer pauses, and the time for which it may be
// away runs on from its first loss.
//   Thread  one; pure: it waits for nothing and logs nothing.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/clock.h"

namespace cairn {

class Flapping {
 public:
  // Of the pauses before a task is dialled again.
  static constexpr Duration kPauseMax = std::chrono::seconds(10);

  // It serves again. `done`: a count of the work that goes through it.
  void back(std::uint64_t done) { done_when_back_ = done; }
  // It is lost. Its losses are counted anew if work was done since it came back, or if none was
  // `wanted`.
  void lost(TimePoint now, std::uint64_t done, bool wanted);

  std::size_t losses() const { return losses_; }  // without work in between
  TimePoint since() const { return since_; }      // of the first of them
  // Before it is dialled: none after a first loss.
  Duration pause() const;
  // It came back more than once in vain, and has been of no use for longer than `patience`.
  bool out_of_patience(TimePoint now, Duration patience) const {
    return losses_ > 2 && now - since_ > patience;
  }

 private:
  std::size_t losses_ = 0;
  TimePoint since_{};
  std::uint64_t done_when_back_ = 0;
};

}  // namespace cairn
