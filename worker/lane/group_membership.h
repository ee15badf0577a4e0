// GroupMembership: a lane's part in a group of lanes: the group itself, and this lane's copies of
// what it keeps in step. For closures that are of no group it changes nothing.
//   Thread  the lane's.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include "rpc/server/signal.h"
#include "worker/lane/closure_run.h"
#include "worker/lane/lane_group.h"
#include "worker/rows/mirror.h"
#include "worker/rows/mirrored_step.h"
#include "worker/rows/remote_store.h"

namespace cairn::worker {

class GroupMembership {
 public:
  GroupMembership(rpc::Reactor& reactor, rpc::Network& network, LaneGroupOptions options)
      : group_(reactor, network, std::move(options)) {}

  LaneGroup& group() { return group_; }
  // Another session begins.
  void leave();
  // By the layout that has come a variable may have other slots.
  void forget_copies() { mirror_.forget(); }

  // How many replicas the closure is one of.
  //   Errors  Aborted: it was sent for another group than the lane is in. It must not meet that
  //           one's calls.
  std::int32_t replicas_of(const ClosureRun& closure) const;
  class Member;
  // The closure's variables, of which its group keeps those of the numbers `mirrored` in step.
  std::unique_ptr<StepStore> open(RemoteStore& store, ActivitySlot* slot, const ClosureRun& closure,
                                  Member& member, const std::set<VariableId>& mirrored,
                                  bool check_copies);

  // A closure's membership in its group, while it runs. If the closure fails, in whatever way, the
  // others of the group no longer wait for it.
  class Member final : public CopiesTurn {
   public:
    // In the order in which they have come.
    Member(GroupMembership& membership, const ClosureRun& closure);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    // When it may reduce, and use the copies: those that came before it have passed on, or ended.
    //   Errors  Aborted: the group has ended.
    rpc::Task<void> turn() override;
    void pass_on() override;
    // Nothing is computed after what it pushes next.
    void pushes_last() { last_ = true; }
    void ended_well() { well_ = true; }

   private:
    GroupMembership& membership_;
    const std::uint64_t number_;  // of its group; 0: it is of none
    const std::uint64_t sequence_;
    bool last_ = false, well_ = false;
  };

 private:
  LaneGroup group_;
  Mirror mirror_;
  std::deque<const Member*> line_;  // those of a group that have not passed on
  rpc::Signal changed_;
};

}  // namespace cairn::worker
