// LookUp: what a thread does now and then while it is long in a call of Cairn's.
//
// A program in Python learns of Ctrl-C only when its thread looks for signals, and one that waits
// for a cluster does not. While a LookUp lives, every wait of its thread calls it about each
// kLookUpEvery: for connections, closures, saves, restores, room in the queue; and so do fit(),
// evaluate() and predict() between two batches. If it throws, the call is given up with that
// exception, and nothing else comes of it: closures run on, a save or a restore goes on to its end,
// and the next call finds the cluster as sound as if this one had never been made.
//   Thread  each has its own. They nest; the innermost is called, without any lock of Cairn's held.
#pragma once
#include <functional>
#include <utility>

#include "core/base/clock.h"

namespace cairn {

inline constexpr Duration kLookUpEvery = std::chrono::milliseconds(100);

class [[nodiscard]] LookUp {
 public:
  explicit LookUp(std::function<void()> look);
  ~LookUp();
  LookUp(const LookUp&) = delete;
  LookUp& operator=(const LookUp&) = delete;

 private:
  friend bool looks_up();
  friend void look_up();
  std::function<void()> look_;
  TimePoint next_{};
  LookUp* before_;
};

// For code that waits, or repeats something. Whether this thread has a LookUp; and calls it, unless
// there is none or it was called just now.
bool looks_up();
void look_up();

// wait(some) waits for at most that long and returns whether what it waits for has come. It is
// called until then, or until `limit` has passed: false.
//   Errors  what the thread's LookUp throws.
template <typename Wait>
bool wait_looking_up(Duration limit, Wait&& wait) {
  for (; looks_up() && limit > kLookUpEvery; limit -= kLookUpEvery) {
    if (wait(kLookUpEvery)) return true;
    look_up();
  }
  return wait(limit);
}
// The same under a lock that is let go of while the thread looks up, and held again afterwards,
// whatever comes.
template <typename Lock, typename Wait>
bool wait_looking_up(Lock& hold, Duration limit, Wait&& wait) {
  struct Relock {
    Lock& hold;
    ~Relock() { hold.lock(); }
  };
  for (; looks_up() && limit > kLookUpEvery; limit -= kLookUpEvery) {
    if (wait(kLookUpEvery)) return true;
    hold.unlock();
    const Relock relock{hold};
    look_up();
  }
  return wait(limit);
}

}  // namespace cairn
