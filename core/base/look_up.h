// LookUp: a function that a thread calls regularly while it waits inside Cairn.
//
// A Python program notices Ctrl-C only when its main thread checks for signals, which it cannot do
// while it waits for a cluster. As long as a LookUp exists, its thread calls it about once every
// kLookUpEvery in every wait (for connections, closures, saves, restores, or room in the queue).
// fit(), evaluate() and predict() call it between batches. If it throws, the waiting call ends with
// that exception and has no other effect: closures keep running, a save or a restore that has begun
// is completed, and the cluster can be used as before.
//
// A thread that works beside others which must not wait for it gives way in its LookUp, more often
// than that: loops that take long call it wherever some tens of microseconds have passed.
//   Thread  each has its own. They nest; the innermost is called, without any lock of Cairn's held.
#pragma once
#include <functional>
#include <utility>

#include "core/base/clock.h"

namespace cairn {

inline constexpr Duration kLookUpEvery = std::chrono::milliseconds(100);

class [[nodiscard]] LookUp {
 public:
  // `apart`: what passes at least between two calls; a wait may end a little early.
  explicit LookUp(std::function<void()> look, Duration apart = kLookUpEvery / 2);
  ~LookUp();
  LookUp(const LookUp&) = delete;
  LookUp& operator=(const LookUp&) = delete;

 private:
  friend bool looks_up();
  friend void look_up();
  std::function<void()> look_;
  Duration apart_;
  TimePoint next_{};
  LookUp* before_;
};

// For code that waits or loops. looks_up(): whether this thread has a LookUp. look_up(): calls it,
// unless there is none or it was called only moments ago.
bool looks_up();
void look_up();

// Calls wait(d), which waits for at most d and returns whether its condition holds, again and again
// until it returns true or `limit` has passed. Returns whether the condition holds.
//   Errors  what the thread's LookUp throws.
template <typename Wait>
bool wait_looking_up(Duration limit, Wait&& wait) {
  for (; looks_up() && limit > kLookUpEvery; limit -= kLookUpEvery) {
    if (wait(kLookUpEvery)) return true;
    look_up();
  }
  return wait(limit);
}
// The same while holding a lock. The lock is released for each look_up() and is held again when
// this function returns or throws.
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
