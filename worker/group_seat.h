// GroupSeat: a lane's part in a group of lanes: the group itself, and this lane's copies of what it
// keeps in step. For closures that are of no group it changes nothing.
//   Thread  the lane's.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "worker/closure.h"
#include "worker/lane_group.h"
#include "worker/mirror.h"
#include "worker/remote_store.h"

namespace cairn::worker {

class GroupSeat {
 public:
  GroupSeat(rpc::Reactor& reactor, rpc::Network& network, LaneGroupOptions options)
      : group_(reactor, network, std::move(options)) {}

  LaneGroup& group() { return group_; }
  // Another session begins.
  void leave();
  // By the layout that has come a variable may have other slots.
  void forget_copies() { mirror_.forget(); }

  // How many replicas the closure is one of.
  //   Errors  Aborted: it was sent for another group than the lane is in. It must not meet that
  //           one's calls.
  std::int32_t replicas_of(const Closure& closure) const;
  // The closure's variables, of which its group keeps those of the numbers `mirrored` in step. One
  // closure of a group at a time.
  std::unique_ptr<StepStore> open(RemoteStore& store, DoingSlot* slot, const Closure& closure,
                                  const std::set<VariableId>& mirrored);

  // Of a closure, while it runs: if it fails, in whatever way, the others of its group wait for it
  // no longer.
  class Member {
   public:
    Member(GroupSeat& seat, const Closure& closure)
        : group_(seat.group_), number_(closure.group), sequence_(closure.sequence) {}
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    void ended_well() { number_ = 0; }

   private:
    LaneGroup& group_;
    std::uint64_t number_;  // 0: it is of none, or has ended well
    const std::uint64_t sequence_;
  };

 private:
  LaneGroup group_;
  Mirror mirror_;
};

}  // namespace cairn::worker
