// Flapping: distinguishes a task that comes and goes from one that stays.
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
  // The longest pause before a task is dialled again.
  static constexpr Duration kPauseMax = std::chrono::seconds(10);

  // It is lost. `done`: a count of the work that goes through it. Its losses are counted anew if
  // work was done since its last one, be it that the news came later, or if none is `wanted`.
  void lost(TimePoint now, std::uint64_t done, bool wanted);
  std::uint64_t done() const { return done_; }  // as of its last loss

  std::size_t losses() const { return losses_; }  // without work in between
  TimePoint since() const { return since_; }      // of the first of them
  // Before it is dialled: none after a first loss.
  Duration pause() const;
  // It came back more than once in vain, and has been of no use for longer than `patience`. `done`:
  // the count now; what was answered after its last loss was work, too.
  bool out_of_patience(TimePoint now, std::uint64_t done, Duration patience) const {
    return losses_ > 2 && done == done_ && now - since_ > patience;
  }

 private:
  std::size_t losses_ = 0;
  TimePoint since_{};
  std::uint64_t done_ = 0;
};

}  // namespace cairn
