// Consistency: how far the lanes of a ParameterServerStrategy may run ahead of one another.
//
//   ParameterServerStrategy strategy(resolver, {.consistency = Consistency::bounded(4)});
//
//   asynchronous()  A closure starts as soon as a lane has room for it. Nothing bounds how stale an
//                   update is; EngineStats counts how stale the updates were.
//   bounded(k)      A closure starts only while that makes no update staler than k steps. A step is
//                   one update from every lane of the cluster, so that the staleness that a shard
//                   measures is below k * lanes, whatever is lost or run again (bounded_policy.h
//                   has the proof). Starts are held back; no update is refused or dropped.
//
// The cost of bounded(k). While one closure is under way, at most k * lanes - 1 updates of others
// may be, or come, so that a lane has at most max(1, k / 2) closures at a time: more would use up
// the bound by waiting behind one another. With k = 1 the lanes work almost in lock step. From
// k = 4 on each lane overlaps two closures, as deep as the default pipeline, and a lane of a
// quarter of the others' speed holds none back for long. A lane that stands still holds all
// others back until its closure has ended, or the lane counts as lost and another one has run it;
// `cairn status` names the closure and its place.
//
//   synchronous(b)  The workers take steps together, in rounds. A round has a member, which is a
//                   closure, for each lane of the cluster. All read the same rows; the shards keep
//                   what the members push, each member's share for itself, and apply the sum of
//                   the shares once, when all members but those of the `b` slowest workers have
//                   answered. The sum is taken in the order of the lanes' numbers, so that a run in
//                   which nothing is lost and b is 0 repeats bit for bit.
//
// Under synchronous(b) a program must reckon with the following.
//   - The shards add up. For the mean over a global batch scale a closure's loss by
//     1 / (its batch * lanes). An optimizer's count of its steps goes up by one per round, as
//     EngineStats::global_step does.
//   - The members of a round run one function, and read the step that all of them share; members
//     draw different random values (the member's number is the replica's).
//   - A round waits for a member for each lane. It is completed with fewer if the next closure in
//     the queue can be none of it, or if the program itself waits (join, done, get or ready of a
//     member) and nothing is queued. So schedule all closures of a step before you ask for one;
//     and ask: to look at counts() or stats() is not to wait.
//   - A closure that assigns (other than by an optimizer) runs alone, between two rounds.
//   - A function that pushes more than once, because it reads variables again after updating
//     others, has no single sum: schedule() refuses it with FailedPrecondition.
//
// If a closure was too slow for its round, its share is not applied, and pushes that its lane still
// sends for it are ignored. It runs again, with the elements that it took, as a member of the next
// round, which waits for it however slow it is. So each closure is applied once, also with backup
// workers, and none is left out twice in a row.
//
// Events while not all shares of a round are there, or not all shards have applied their sum, and
// their consequences:
//   a closure runs again          Its share takes the place of the one it left behind. Rows do not
//                                 change within a round, so that both hold the same values.
//   a worker is lost and fenced   What it sent before stays, until the run that takes over replaces
//                                 it; what it sends afterwards is refused.
//   a checkpoint's cut            The shares are in no checkpoint: their closures are uncommitted,
//                                 and a run that goes on from the checkpoint runs them anew. No
//                                 cut is made while a round is being applied.
//   a ps is lost                  Its shares are lost with it. It refuses to apply a round whose
//                                 members were sent before it came back. All members run again, as
//                                 a new round of the same closures; shards that have applied the
//                                 old one answer that their part is done.
//   the coordinator is lost       Its session ends, and all shares with it. With a journal
//                                 (EngineOptions::journal) the next coordinator has the shards that
//                                 lack the round apply it, with the same members; members of a
//                                 round that was not complete run again.
//   a member fails                The program is given its error. The others are applied without
//                                 it.
//
// Closures that update no variable are not counted. They are started in the order in which they
// were scheduled, as always, and so may wait behind one that is held back.
//   Thread  any: it is a value.
//   Errors  InvalidArgument: bounded(0), under which no two closures could run at the same time.
#pragma once
#include <cstdint>
#include <optional>
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
  // A round does without the shares of the `backup_workers` slowest workers. Of fewer workers than
  // there are: the strategy's constructor refuses others with InvalidArgument.
  static Consistency synchronous(std::uint32_t backup_workers = 0) {
    Consistency made;
    made.backup_workers_ = backup_workers;
    return made;
  }

  // The k of bounded(k); 0 if nothing is bounded.
  std::uint32_t steps() const { return steps_; }
  // A step is a round, with a closure for each lane: synchronous(b), and under HybridStrategy.
  bool in_rounds() const { return backup_workers_.has_value(); }
  std::uint32_t backup_workers() const { return backup_workers_.value_or(0); }
  // "asynchronous", "bounded(4)", "synchronous(1)"; "hybrid" under HybridStrategy.
  std::string text() const {
    if (mirrors_) return "hybrid";
    if (in_rounds()) return str("synchronous(", backup_workers(), ")");
    return steps_ == 0 ? "asynchronous" : str("bounded(", steps_, ")");
  }
  bool operator==(const Consistency&) const = default;

 private:
  friend struct HybridConsistency;

  std::uint32_t steps_ = 0;
  bool mirrors_ = false;                         // HybridStrategy's
  std::optional<std::uint32_t> backup_workers_;  // none: there are no rounds
};

}  // namespace cairn
