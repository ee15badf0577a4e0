// ConsistencyPolicy: the part of a scheduler that a Consistency decides. Which closures may be
// under way together, on which lanes, and when a closure that a lane has answered has ended.
//
//   asynchronous_policy.h  A closure starts as soon as a lane has room for it.
//   bounded_policy.h       bounded(k): a closure starts unless an update would become too stale.
//   rounds_policy.h        Closures are members of rounds, and each round is applied as one sum:
//     synchronous_policy.h   synchronous(b): the shards compute the sum.
//     hybrid_policy.h        HybridStrategy: the lanes of a group all-reduce.
//
// To add one: a class here, a line in make_policy(), and the function of Consistency that a program
// calls. A policy overrides what differs from asynchronous updates, which is what this class does.
//
// The life of a closure, as a policy sees it. The scheduler asks may_start() of the closure at the
// head of the queue and lane_for() for its lane, and says begun(). The lane's answer comes with
// answered(): the closure ends there, unless the policy holds it, and then commits it itself. If a
// run ends without a result, lost() is called; the closure goes back to the queue, and once it
// leaves that again all of this is repeated. ended() is the last call for a closure.
//   Thread  the engine's, except for verify().
//   Cost    of asynchronous updates: a few virtual calls for each closure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/session.h"
#include "coordinator/dispatch/outcomes.h"
#include "coordinator/dispatch/table_lock.h"
#include "coordinator/journal/journal_event.h"
#include "coordinator/journal/recorder.h"
#include "coordinator/progress/progress_book.h"

namespace cairn {

// The parts of the engine that a policy uses. All outlive it; the members' lanes are complete when
// the first closure is sent.
struct PolicyParts {
  Session& session;
  ClusterMembers& members;
  const TableLock& lock;
  ProgressBook& progress;
  Outcomes& outcomes;
  Recorder& recorder;
  std::function<void()> pump;  // has the scheduler send what can be sent
};

class ConsistencyPolicy {
 public:
  explicit ConsistencyPolicy(PolicyParts parts) : parts_(std::move(parts)) {}
  ConsistencyPolicy(const ConsistencyPolicy&) = delete;
  ConsistencyPolicy& operator=(const ConsistencyPolicy&) = delete;
  virtual ~ConsistencyPolicy() = default;

  // ---- from the queue to a lane ----
  // May the closure at the head of the queue leave it? Whatever changes the answer pumps the
  // scheduler.
  virtual bool may_start(const Closure& next) const;
  // Has the closure, which came back to the queue, to run before any that is held back?
  virtual bool goes_first(const Closure& closure) const;
  // The lane that is to run the closure, of those that have room; null: none yet. `least_loaded` is
  // the one of them with the fewest closures, or null.
  virtual LaneState* lane_for(const Closure& next, LaneState* least_loaded) const;
  // The closure has left the queue for that lane, for the first time or again. Gives it its step.
  virtual void begun(const std::shared_ptr<Closure>& closure, const LaneState& lane);
  // The lane is prepared for the closure, which took a while: is it still to run?
  virtual bool still_wanted(const Closure& closure) const;
  // How many closures to have at a lane, of `most` that it could have.
  virtual std::size_t lane_window(std::size_t most) const;

  // ---- from a lane to the result ----
  enum class Answer : std::uint8_t { kEnds, kHeld };
  // A lane has run the closure. kHeld: the policy has taken the reply, and ends the closure later.
  virtual Answer answered(const std::shared_ptr<Closure>& closure, LaneState& lane,
                          LaneReply& reply);
  // A lane that is still there ended its run without a result.
  virtual void lost(const Closure& closure);
  // Do its own pushes change rows? Then a run that is lost may have changed those of some shards.
  virtual bool pushes_alone(const Closure& closure) const;
  // No lane runs the closure any more: it was committed, failed, or was cancelled. Nothing if it
  // never began.
  virtual void ended(const Closure& closure);
  // A closure for which there are no elements waits until those of all others are committed, and
  // only then fails. False: it fails at once.
  virtual bool waits_for_elements() const;

  // ---- whenever something has changed that the policy may wait for ----
  virtual void settle();
  // All closures that can be sent have been.
  virtual void sent();

  // ---- for people ----
  // The reason why the closure at the head of the queue cannot start yet. Empty: none here.
  virtual std::string held_back(const Closure& next) const;
  // One of the closures that a lane has answered and the policy holds.
  struct Held {
    const Closure& closure;
    const LaneState& lane;
    std::string waits_for;
  };
  virtual std::optional<Held> held() const;

  // ---- as an engine starts, and functions are made ----
  // An earlier coordinator of the session had sent these closures, by their numbers, and they have
  // not ended. It may have had some shards apply `round`, if there is one: the closures that are
  // its members do not come from the queue.
  virtual void resume(const std::vector<std::shared_ptr<Closure>>& open,
                      const std::optional<journal::RoundNamed>& round);
  // InvalidArgument: what is promised cannot be kept with the members that are listed now.
  virtual void verify_members() const;
  // How many of the worker's lanes to use.
  virtual std::uint32_t lanes_used(const Worker& worker, std::uint32_t lanes) const;
  // FailedPrecondition: a function that cannot be run under this consistency. Any thread.
  virtual void verify(const RegisteredFunction& function) const;

 protected:
  void give_step(Closure& closure);
  // Where a closure that began is now, for people.
  std::string place_of(std::uint64_t sequence) const;
  const ClusterMembers& members() const { return parts_.members; }
  ClosureQueue& queue() const { return parts_.session.queue; }

  PolicyParts parts_;
};

// The policy of the session's options.
std::unique_ptr<ConsistencyPolicy> make_policy(PolicyParts parts);

}  // namespace cairn
