// RoundsPolicy: what synchronous(b) and HybridStrategy have in common. Closures are members of
// rounds, and each round is applied as one sum (consistency.h has the rules).
//
// A member's number is that of the lane to which it was sent first. The n-th closure in the queue
// goes to the n-th lane, so that the sum's order is that of the queue as well, and one history
// gives one sum. A member that is lost keeps its number, whichever lane runs it again.
//
// Why each closure is applied once. Shards keep the shares of a round, and apply those of the
// members that are named to them, once, since they know the closures that they have applied. A
// closure is a member of one round at a time, and what a lane answers counts only if the lane ran
// it for that round. While some shard may have applied a round and another one has not, its members
// are torn, as any closure is that some shards have and others not: no cut is made, and no error
// elsewhere cancels them.
//
// A coordinator that goes on with the session of an earlier one must bring a round to the end that
// some shards have applied and others not, with the same members in the same order. So with a
// journal the members are recorded before the first shard is asked. All of them had answered, and
// the shards have kept their shares: the successor asks all shards to apply the round once more,
// before it sends anything else. A shard that has lost its shares says so, as it would have before.
// If a round was not recorded, its members run again like any other closures, in later rounds.
//
// Why nothing waits for ever. Members that run again go before all else in the queue; each round
// ends when its members have answered, and can wait for the program only while nothing is queued
// and the program itself waits for nothing.
//   Thread  the engine's, except for verify().
//   Cost    a pass over the lanes for each closure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/dispatch/consistency_policy.h"
#include "rpc/loop/task.h"

namespace cairn {

class RoundsPolicy : public ConsistencyPolicy {
 public:
  struct Member : Outcomes::Result {  // without a lane: it has not answered
    bool waited_for = false;          // it was left out of its last round
  };
  using Members = std::map<std::int32_t, Member>;  // by their numbers

  explicit RoundsPolicy(PolicyParts parts);

  bool may_start(const Closure& next) const override;
  bool goes_first(const Closure& closure) const override;
  // A new member goes to the first lane that has none. What runs again goes where least is to do,
  // but never to a lane that still has an older run of it, whose answer could be taken for the new
  // one's.
  LaneState* lane_for(const Closure& next, LaneState* least_loaded) const override;
  void begun(const std::shared_ptr<Closure>& closure, const LaneState& lane) override;
  // Not after its round was applied without it.
  bool still_wanted(const Closure& closure) const override;
  Answer answered(const std::shared_ptr<Closure>& closure, LaneState& lane,
                  LaneReply& reply) override;
  // Nothing of a member is applied before its round is.
  bool pushes_alone(const Closure& closure) const override { return !takes(closure); }
  void ended(const Closure& closure) override;
  // A round must not wait for members that there is no data for.
  bool waits_for_elements() const override { return false; }
  // Applies the open round, if it is complete and may be applied now.
  void settle() override;
  std::string held_back(const Closure& next) const override;
  std::optional<Held> held() const override;
  // A function pushes once, unless it runs alone.
  void verify(const RegisteredFunction& function) const override;

  void resume(const std::vector<std::shared_ptr<Closure>>& open,
              const std::optional<journal::RoundNamed>& round) override;

  // ---- the open round, for tests ----
  const Members& open_members() const { return open_.members; }

 protected:
  struct Round {
    Members members;
    std::uint64_t number = 0;
    std::int64_t step = -1;  // all members'
    bool closed = false;     // it runs again with the same members: no closure joins it
    // Under HybridStrategy: the number of its group; the round whose copies its members use; what
    // ClusterMembers::rows_generation() was when it began; and how many lanes the group has.
    std::uint64_t group = 0, base = 0, generation = 0;
    std::size_t whole = 0;
  };
  // The outcome of calling all shards to apply the open round.
  struct Attempt {
    std::exception_ptr error;
    bool anywhere = false;     // some shard has applied the round
    bool all_answered = true;  // no shard may apply it later
  };

  // ---- what the two differ in ----
  // May the closure, which updates, be sent now?
  virtual bool fits(const Closure& next) const = 0;
  virtual bool may_join(const Round& round, const LaneState& lane) const;
  // The round that new members join is the one ahead of the open one.
  virtual bool ahead_is_next() const { return false; }
  // The round, which has no members yet, gets its number and its step; `steps` is how many it
  // counts.
  virtual void open(Round& round, std::int64_t steps) = 0;
  // Whether the open round, which has members and is not being applied yet, is to be applied now.
  virtual bool complete() const = 0;
  // The shards are asked to apply the open round next.
  virtual void before_applying() = 0;
  virtual void not_applied(const Attempt& attempt) = 0;
  // The open round was applied by all shards: its members' results. The next round is open.
  virtual std::vector<Outcomes::Result> take();

  // ---- for both ----
  const Round& next_round() const { return ahead_is_next() ? ahead_ : open_; }
  bool has(const Closure& closure) const { return find(closure) != nullptr; }
  // Does the closure become, or is it, a member? Not if it runs alone, or pushes nothing.
  static bool takes(const Closure& closure) {
    return closure.function->updates && !closure.function->assigns;
  }
  // As far as the closure goes; whether there is a lane for it is another question.
  static bool can_join(const Round& round, const Closure& next);
  bool any_may_join(const Round& round) const;
  static bool all_answered(const Round& round);
  std::size_t lanes_ready() const;
  // Shards know every number for as long as the session lasts, and take no lower one.
  std::uint64_t next_number() { return ++newest_; }
  // No closure joins the open round any more, as far as can be known.
  bool none_to_come() const;
  void commit_round();
  void fail(Closure& closure, const std::exception_ptr& error);
  void fail_round(const std::exception_ptr& error);
  // Another run of the members mends it: a ps went away, or came back without their shares.
  static bool may_run_again(const std::exception_ptr& error);
  // The members that have answered are to run again, as the same round. Returns them.
  std::vector<std::shared_ptr<Closure>> forget_answers();

  Round open_;
  Round ahead_;              // begins as soon as the open one is whole; under HybridStrategy only
  std::uint64_t alone_ = 0;  // the closure that runs between two rounds; 0: none
  bool applying_ = false;    // the open round is being applied

 private:
  const Member* find(const Closure& closure) const;
  rpc::Task<void> apply_round();
  void record_round() const;
  std::string waits_for() const;

  std::uint64_t newest_ = 0;  // number of a round
};

}  // namespace cairn
