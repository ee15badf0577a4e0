// Rounds: the gate of synchronous(b) and of HybridStrategy, and what it knows of the open round.
// Which closures are its members, who of them has answered, and when its sum is applied
// (consistency.h has the rules).
//
// A member's number is that of the lane to which it was sent first. The n-th closure in the queue
// goes to the n-th lane, so that the sum's order is that of the queue as well, and one history
// gives one sum. A member that is lost keeps its number, whichever lane runs it again.
//
// Why each closure is applied once. Shards keep the shares of a round, and apply those of the
// members that the dispatcher names, once, since they know the closures that they have applied. A
// closure that is left out is not named; what its lane still sends for it is a share of a round
// that is over. It is a member of one round at a time, and what a lane answers counts only if the
// lane ran it for that round: a lane that is late (Lane::late) is not asked.
// When some shard may have applied a round and another one has not, because it lost its shares, all
// members run again, as a new round of the same closures: nobody joins it, and nobody is left out.
// The members are torn until that is done, as any closure is that some shards have and others not.
//
// Under HybridStrategy each lane of a group (round_group.h) runs one member, and the members
// all-reduce their gradients before any of them pushes, so they wait for each other. If one fails,
// if its lane is lost, or if there are fewer closures than lanes, the round is dissolved: all
// members come back first, and then join later rounds, with whichever others. Of the dissolved
// round only rows of tables were applied, and those once for each closure. Once all members have
// answered, the round is no longer dissolved but applied.
//
// As soon as the open round is whole, the next one may begin ahead of it. Its members read their
// data and their rows of tables at once, and continue when the member before them on the lane has
// updated the lane's copies. They assume that the open round will be applied; if it is not, they
// are dissolved with it.
//
// Why nothing waits for ever. Members that run again go before all else in the queue; each round
// ends when its members have answered, and can wait for the program only while nothing is queued
// and the program itself waits for nothing. A closure that was left out is waited for in the next
// round.
//   Thread  the engine's.
//   Cost    without rounds: one comparison a closure. In rounds: a pass over the lanes for each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/consistency.h"
#include "coordinator/dispatch/round_group.h"

namespace cairn {

class Rounds {
 public:
  struct Member {
    std::shared_ptr<Closure> closure;
    bool waited_for = false;  // it was left out of its last round
    Lane* lane = nullptr;     // that has answered; null: none has
    LaneReply reply;
  };
  using Members = std::map<std::int32_t, Member>;  // by their numbers

  // `members` outlives it; their lanes are complete when the first closure is sent.
  Rounds(Consistency consistency, const ClusterMembers& members)
      : on_(consistency.in_rounds()),
        mirrors_(consistency.mirrors()),
        backups_(consistency.backup_workers()),
        cluster_(members),
        group_(members) {}

  bool on() const { return on_; }
  bool mirrors() const { return mirrors_; }  // HybridStrategy
  // ---- closures that leave the queue ----
  bool admits(const Closure& next) const { return !on_ || !next.function->updates || fits(next); }
  // Does it become, or is it, a member? Not where it runs alone, or pushes nothing.
  bool takes(const Closure& next) const {
    return on_ && next.function->updates && !next.function->assigns;
  }
  // Which lane should run it, of those that have room; null: none yet.
  Lane* lane_for(const Closure& next, const std::function<bool(const Lane&)>& has_room) const;
  // It is at work from now on, or again. `give_step` is asked for the round's step.
  void begins(const std::shared_ptr<Closure>& closure, const Lane& lane,
              const std::function<std::int64_t()>& give_step);
  bool has(const Closure& closure) const;  // a member of the open round
  // It has to be run again before anything else is begun.
  bool goes_first(const Closure& closure) const {
    return has(closure) || closure.sequence == alone_;
  }
  // Nobody runs it again: it ended alone, failed, or was cancelled. Nothing if it never began.
  void gone(const Closure& closure) {
    if (on_) end(closure);
  }

  // ---- the group, under HybridStrategy ----
  // How many closures are in the queue.
  void note_queued(std::size_t closures) { queued_ = closures; }
  RoundGroup& group() { return group_; }
  const RoundGroup& group() const { return group_; }
  // The group of a round is no more, or its members were told of copies that turned out wrong, and
  // not all of them have answered: none of the others is to end well.
  bool broken() const;
  // A member is on a lane.
  bool at_work() const;
  bool of_group(std::uint64_t number) const {
    return number != 0 && (open_.group == number || ahead_.group == number);
  }
  // Fewer closures than the group has lanes, and no more to come: the members wait in vain.
  bool short_of_members(const Closure* front,
                        const std::function<bool(const std::vector<const Closure*>&)>& waits) const;
  std::vector<Lane*> lanes_of_members() const;
  // Rounds of which not all have answered are over, nothing of them is applied. Returns those that
  // have answered; the others are in the queue, or on their way there.
  std::vector<std::shared_ptr<Closure>> dissolve();

  // ---- the open round ----
  void answered(const Closure& closure, Lane& lane, LaneReply reply);
  // Whether the round is to be applied. `front`: of the queue, and `program_waits`: for one of
  // these closures, or for all.
  using Waits = std::function<bool(const std::vector<const Closure*>&)>;
  bool complete(const Closure* front, const Waits& program_waits) const;
  // The round is being applied. Returns those who are left out.
  std::vector<std::shared_ptr<Closure>> begin_to_apply();
  bool applying() const { return applying_; }
  std::uint64_t number() const { return open_.number; }
  const Members& members() const { return open_.members; }
  // It was applied everywhere: what its members brought.
  Members take();
  // Not everywhere: all members, which have answered, are to run again as a new round.
  std::vector<std::shared_ptr<Closure>> run_again();
  // Some shards may have to be asked once more.
  void apply_later() { applying_ = false; }
  // Copies on lanes are not what the ps have, whatever they are of.
  void forget_copies() { base_ = 0; }
  // Those that have answered are to run again, as the same round: nobody can apply it now.
  std::vector<std::shared_ptr<Closure>> forget_answers();

  // For people: for whom the round waits. Empty: no round is open.
  std::string waits_for() const;
  // The same of `next`, if it is held back.
  std::string holder(const Closure& next) const;

 private:
  struct Round {
    Members members;
    std::uint64_t number = 0;
    std::int64_t step = -1;  // all members'
    // Under HybridStrategy: the number of its group; the round whose copies its members use; what
    // ClusterMembers::rows_epoch() was when it began; and how many lanes the group has.
    std::uint64_t group = 0, base = 0, epoch = 0;
    std::size_t whole = 0;
  };
  void end(const Closure& closure);
  const Member* find(const Closure& closure) const;
  bool fits(const Closure& next) const;
  bool all_sent() const;
  bool ahead_is_next() const;
  const Round& next_round() const { return ahead_is_next() ? ahead_ : open_; }
  bool may_join(const Round& round, const Lane& lane) const;
  bool any_may_join(const Round& round) const;
  bool can_join(const Round& round, const Closure& next) const;
  void open(Round& round, const std::function<std::int64_t()>& give_step);
  bool none_to_come(const Closure* front,
                    const std::function<bool(const std::vector<const Closure*>&)>& waits) const;
  static bool all_answered(const Round& round);
  bool stands(const Round& round) const;
  bool at_work(const Round& round) const;
  void dissolve(Round& round, std::vector<std::shared_ptr<Closure>>& answered);
  std::size_t spare_lanes() const;
  std::string place_of(const Closure& closure) const;

  const bool on_, mirrors_;
  const std::uint32_t backups_;
  const ClusterMembers& cluster_;
  RoundGroup group_;
  Round open_;
  Round ahead_;               // begins as soon as the open one is whole; under HybridStrategy only
  std::uint64_t newest_ = 0;  // number of a round
  std::deque<std::int64_t> unused_steps_;  // of rounds that were dissolved
  std::uint64_t alone_ = 0;                // the closure that runs between two rounds; 0: none
  std::size_t queued_ = 0;
  bool applying_ = false;
  bool again_ = false;  // the round is another one's members, run again
  // The last round that was applied, if copies of it are as the ps have it, and rows_epoch() as it
  // began; 0: none is.
  std::uint64_t base_ = 0, base_epoch_ = 0;
  std::uint64_t restores_ = 0;  // ClusterMembers::restores, when the newest round began
};

}  // namespace cairn
