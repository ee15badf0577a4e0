// StuckWatch: which closures make no progress, and what they wait for.
//
// Looks at the closures that head each lane and the queue, about once a second. Progress is another
// thing to do or wait for; of a closure that is run again only what lies beyond what it reached
// before.
//   Thread  one.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/clock.h"

namespace cairn {

// One closure as it stands now.
struct ClosureProgress {
  enum class Stage : std::uint8_t {
    kQueued,
    kPreparing,
    kSent,
    kReading,
    kPulling,
    kComputing,
    kHeld,
    kPushing
  };
  std::uint64_t sequence = 0;
  std::string function;
  std::int64_t step = -1;  // -1: it has none
  std::uint32_t attempts = 0;
  Stage stage = Stage::kQueued;
  std::string worker;  // empty: it is in the queue
  std::uint32_t lane = 0;
  std::string waits_for;  // "pulling from /job:ps/task:0 shard 1"
  // it does that; below 0: unknown, and counted from when it was first seen
  Duration since{-1};
};

struct StuckClosure {
  ClosureProgress closure;
  Duration still{0};     // without progress
  bool to_tell = false;  // in the log: the first time, and when the time has doubled
};

class StuckWatch {
 public:
  explicit StuckWatch(Duration after) : after_(after) {}
  // Those without progress for `after`, as of `now`.
  std::vector<StuckClosure> look(TimePoint now, std::vector<ClosureProgress> closures);

 private:
  struct Known {
    TimePoint progress, seen;
    ClosureProgress::Stage furthest = ClosureProgress::Stage::kQueued;
    ClosureProgress::Stage stage = ClosureProgress::Stage::kQueued;
    std::uint32_t attempts = 0;
    Duration tell_at{0};
  };
  static void note(Known& known, const ClosureProgress& closure, TimePoint now);
  Duration after_;
  std::map<std::uint64_t, Known> known_;
};

// "closure 41 (train, step 40) has made no progress for 60 s: on /job:worker/task:1 lane 0, pulling
// from /job:ps/task:0 shard 1"
std::string stuck_text(const StuckClosure& stuck);

}  // namespace cairn
