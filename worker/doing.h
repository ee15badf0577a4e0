// Doing: what each closure that has begun on a lane does or waits for, and since when, for `cairn
// status`.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "core/base/clock.h"

namespace cairn::worker {

enum class Doing : std::uint8_t {
  kWaitingToRead,  // others read their data first
  kReading,
  kWaitingForOthers,  // as many as may be at work at once are
  kConnecting,        // these have a shard: to it,
  kWaitingToPull,     // for credit,
  kPulling,
  kWaitingToPush,
  kPushing,
  kWaitingToCompute,  // others compute
  kComputing,
  kHeld,  // a checkpoint holds pushes
};
std::string_view doing_text(Doing doing);  // "pulling from"
bool has_shard(Doing doing);

struct ShardNumber {
  std::uint32_t ps = 0;     // as the layout counts them
  std::uint32_t shard = 0;  // of it
};

// One closure's. Written by its lane, read by any thread: each number is right, together they may
// be a moment apart.
class DoingSlot {
 public:
  struct Seen {
    std::uint64_t sequence = 0;
    Doing doing = Doing::kWaitingToRead;
    ShardNumber at;
    Duration since{0};  // by the reactors' clock
  };

  void begin(std::uint64_t sequence, Duration now) {
    set(Doing::kWaitingToRead, now);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
  }
  void set(Doing doing, Duration now, ShardNumber at = {}) {
    shard_.store(std::uint64_t{at.ps} << 32 | at.shard, std::memory_order_relaxed);
    since_.store(now.count(), std::memory_order_relaxed);
    doing_.store(doing, std::memory_order_relaxed);
  }
  void end() { sequence_.store(0, std::memory_order_relaxed); }
  bool read(Seen& out) const;  // false: nobody has this slot

 private:
  std::atomic<std::uint64_t> sequence_{0};  // of the closure, plus 1; 0: nobody's
  std::atomic<std::uint64_t> shard_{0};
  std::atomic<std::int64_t> since_{0};
  std::atomic<Doing> doing_{Doing::kWaitingToRead};
};

// Slots for as many closures as may have begun at once.  Thread: take() and give() the lane's.
class DoingBoard {
 public:
  static constexpr std::size_t kSlots = 65;  // Lane::kDepthMax and the one that has its data ready
  DoingBoard();
  DoingSlot* take();  // null: all are in use, and this closure is not told of
  void give(DoingSlot* slot);
  std::vector<DoingSlot::Seen> seen() const;

 private:
  std::array<DoingSlot, kSlots> slots_;
  std::vector<DoingSlot*> free_;
};

// The calls of a closure's wave that are under way: the slot tells of the oldest. Thread: the
// lane's.
class CallsUnderWay {
 public:
  explicit CallsUnderWay(DoingSlot* slot) : slot_(slot) {}
  using Id = std::size_t;
  Id begin(Doing doing, ShardNumber at, Duration now);
  void set(Id call, Doing doing, Duration now);
  void end(Id call, Duration now);
  bool told() const { return slot_ != nullptr; }

 private:
  struct Call {
    Doing doing;
    ShardNumber at;
    bool over = false;
  };
  void tell(Duration now) const;
  DoingSlot* slot_;
  std::deque<Call> calls_;
  Id first_ = 0;  // number of calls_.front()
};

}  // namespace cairn::worker
