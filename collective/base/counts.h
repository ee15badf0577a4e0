// CollectiveCounts: what a member's collective calls have come to, for reports and progress lines.
//
//   calls    of any kind; a call counts when it ends
//   bytes    of this member's own values in them: what an all-reduce sums, a broadcast's value on
//            its root, what a member passes to all_gather and reduce. On a network a member sends
//            up to twice as much.
//   held     how long the member's own thread stood in calls: with reductions that go on while it
//            computes, less than they take.
//   waited   the part of it until the slowest other member had come: with threads until all had
//            made the call, on a network until the first values of another one were there.
//   Thread   any: it is a value.
#pragma once
#include <cstdint>

namespace cairn {

struct CollectiveCounts {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  double held_seconds = 0;
  double waited_seconds = 0;

  CollectiveCounts& operator+=(const CollectiveCounts& other) {
    calls += other.calls;
    bytes += other.bytes;
    held_seconds += other.held_seconds;
    waited_seconds += other.waited_seconds;
    return *this;
  }
};

}  // namespace cairn
