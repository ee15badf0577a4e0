// Consistency: how far the lanes of a ParameterServerStrategy may run ahead of one another.
//
//   ParameterServerStrategy strategy(resolver, {.consistency = Consistency::bounded(4)});
//
//   asynchronous()  A closure starts as soon as a lane has room for it. Nothing bounds how stale an
//                   update is; EngineStats tells how stale the updates were.
//   bounded(k)      A closure starts only while that makes no update staler than k steps. A step is
//                   one update from every lane of the cluster, so that the staleness that a shard
//                   measures is below k * lanes, whatever is lost or run again (staleness_bound.h
//                   has the proof). Starts are held back; no update is refused or dropped.
//
// What bounded(k) costs. While one closure is under way, at most k * lanes - 1 updates of others
// may be, or come, so that a lane has at most max(1, k / 2) closures at a time: more would use up
// the bound by waiting behind one another. With k = 1 the lanes work almost in lock step. From
// k = 4 on each lane overlaps two closures, as deep as the default pipeline, and a lane of a
// quarter of the others' speed holds nobody back for long. A lane that stands still holds all
// others back until its closure has ended, or the lane counts as lost and another one has run it;
// `cairn status` names the closure and its place.
//
// Closures that update no variable are not counted. They are started in the order in which they
// were scheduled, as always, and so may wait behind one that is held back.
//   Thread  any: it is a value.
//   Errors  InvalidArgument: bounded(0), which would let nobody work beside anybody else.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/error.h"

namespace cairn {

class Consistency {
 public:
  // The default.
  Consistency() = default;
  static Consistency asynchronous() { return {}; }
  // `steps` >= 1.
  static Consistency bounded(std::uint32_t steps) {
    if (steps == 0)
      throw InvalidArgumentError(
          "bounded(0): an update would have to be as fresh as if no other lane worked; the "
          "smallest bound is 1");
    Consistency made;
    made.steps_ = steps;
    return made;
  }

  // Of bounded(k): k. 0: nothing is bounded.
  std::uint32_t steps() const { return steps_; }
  // "asynchronous", "bounded(4)".
  std::string text() const { return steps_ == 0 ? "asynchronous" : str("bounded(", steps_, ")"); }
  bool operator==(const Consistency&) const = default;

 private:
  std::uint32_t steps_ = 0;
};

}  // namespace cairn
