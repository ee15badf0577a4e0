// ActivitySlot, ActivityBoard: what each closure that has begun on a lane does or waits for, and
// since when, for `cairn status`.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/base/clock.h"
#include "rpc/server/closure_activity.h"

namespace cairn::worker {

using rpc::Activity;

struct ShardNumber {
  std::uint32_t ps = 0;     // as the layout counts them
  std::uint32_t shard = 0;  // of it
};

// One closure's activity. Written by its lane, read by any thread: each number is right, together
// they may be a moment apart.
class ActivitySlot {
 public:
  struct Seen {
    std::uint64_t sequence = 0;
    Activity activity = Activity::kWaitingToRead;
    ShardNumber at;
    Duration since{0};  // by the reactors' clock
  };

  void begin(std::uint64_t sequence, Duration now) {
    set(Activity::kWaitingToRead, now);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
  }
  void set(Activity activity, Duration now, ShardNumber at = {}) {
    shard_.store(std::uint64_t{at.ps} << 32 | at.shard, std::memory_order_relaxed);
    since_.store(now.count(), std::memory_order_relaxed);
    activity_.store(activity, std::memory_order_relaxed);
  }
  void end() { sequence_.store(0, std::memory_order_relaxed); }
  bool read(Seen& out) const;  // false: no closure has this slot

 private:
  std::atomic<std::uint64_t> sequence_{0};  // of the closure, plus 1; 0: the slot is free
  std::atomic<std::uint64_t> shard_{0};
  std::atomic<std::int64_t> since_{0};
  std::atomic<Activity> activity_{Activity::kWaitingToRead};
};

// Slots for as many closures as may have begun at once.  Thread: take() and give() the lane's.
class ActivityBoard {
 public:
  static constexpr std::size_t kSlots = 65;  // Lane::kDepthMax and the one that has its data ready
  ActivityBoard();
  ActivitySlot* take();  // null if all are taken; the closure is then missing from `cairn status`
  void give(ActivitySlot* slot);
  std::vector<ActivitySlot::Seen> seen() const;

 private:
  std::array<ActivitySlot, kSlots> slots_;
  std::vector<ActivitySlot*> free_;
};

// The calls of a closure's wave that are under way: the slot shows the oldest. Thread: the
// lane's.
class CallsUnderWay {
 public:
  explicit CallsUnderWay(ActivitySlot* slot) : slot_(slot) {}
  using Id = std::size_t;
  Id begin(Activity activity, ShardNumber at, Duration now);
  void set(Id call, Activity activity, Duration now);
  void end(Id call, Duration now);

 private:
  struct Call {
    Activity activity;
    ShardNumber at;
    bool over = false;
  };
  void show(Duration now) const;
  ActivitySlot* slot_;
  std::deque<Call> calls_;
  Id first_ = 0;  // number of calls_.front()
};

}  // namespace cairn::worker
