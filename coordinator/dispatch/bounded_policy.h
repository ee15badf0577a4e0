// BoundedPolicy: bounded(k). May a closure that has never left the queue leave it?
//
// It counts pushes, as shards do: a closure makes at most one on a shard for each wave of updates
// of its function (one, for a training step). A closure is open from the moment at which it first
// leaves the queue until it has ended, well or not, however often it is lost and run meanwhile.
//
//   begun    the pushes of all closures that have ever left the queue
//   ended    the pushes of those of them that have ended
//   since(c) begun, less what `ended` was just before c left the queue: the pushes of c, of those
//            that were open then, and of those that have left the queue since
//
// The gate lets a closure leave only while since(c) <= k * lanes will hold afterwards for each
// open c. `ended` never goes back, so that the open closure that left first has the largest
// since(), and is the only one to be looked at.
//
// Why no measured staleness reaches k * lanes. A shard measures, when it applies a push of c, how
// many pushes of others it has applied since some attempt of c pulled. It applies each push of a
// closure once. One that it applied after that pull belongs to a closure that had not ended well
// before the pull, since what such a one still sends is a duplicate everywhere; so that closure was
// open when c left the queue, or left it later, and its pushes are part of since(c), beside those
// of c itself. So the staleness is at most since(c) - 1 < k * lanes, for each attempt of c: also
// for one whose lane is taken for dead and whose push comes late, because c stays open, with the
// count with which it first left, until it has ended.
// (A function of more waves than k * lanes leaves only when nothing else is open; nothing leaves
// beside it.)
//
// Why nothing waits for ever. What is run again is open already and is never held back, and it
// stands in the queue before all that has not left it yet. So each open closure ends, or a part of
// the engine that waits for a lost task says so; with the last one gone the gate is open.
// Checkpoints: a cut holds pushes, not starts. A closure that is held back has nothing in it.
//   Thread  the engine's.
//   Cost    an entry for each open closure, of which there are at most k * lanes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/dispatch/consistency_policy.h"

namespace cairn {

class BoundedPolicy final : public ConsistencyPolicy {
 public:
  explicit BoundedPolicy(PolicyParts parts);

  bool may_start(const Closure& next) const override { return passes(next) || fits(next); }
  void begun(const std::shared_ptr<Closure>& closure, const LaneState& lane) override;
  void ended(const Closure& closure) override;
  // consistency.h has the reason.
  std::size_t lane_window(std::size_t most) const override;
  std::string held_back(const Closure& next) const override;

 private:
  struct Open {
    std::uint64_t pushes = 0, ended_before = 0;
  };

  // It is not counted, or open already.
  static bool passes(const Closure& closure) {
    return !closure.function->updates || closure.global_step >= 0;
  }
  bool fits(const Closure& next) const;
  std::uint64_t limit() const { return std::uint64_t{steps_} * members().lanes.size(); }
  std::uint64_t pushes_of(const RegisteredFunction& function) const;

  const std::uint32_t steps_;
  std::uint64_t begun_ = 0, ended_ = 0;
  std::map<std::uint64_t, Open> open_;         // by sequence number, the order in which they left
  mutable std::vector<std::uint64_t> pushes_;  // by function; 0: not counted yet
};

}  // namespace cairn
