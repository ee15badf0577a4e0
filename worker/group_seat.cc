#include "worker/group_seat.h"

namespace cairn::worker {

void GroupSeat::leave() {
  group_.leave();
  mirror_.forget();
}

std::int32_t GroupSeat::replicas_of(const Closure& closure) const {
  if (closure.group == 0) return 1;
  if (closure.group != group_.number())
    throw AbortedError(str("closure ", closure.sequence, " is of group ", closure.group,
                           ", and this lane is in ", group_.number(), ": run it again"));
  return static_cast<std::int32_t>(group_.size());
}

// The first member of a group tells the ps what all of them have in common.
std::unique_ptr<StepStore> GroupSeat::open(RemoteStore& store, ActivitySlot* slot,
                                           const Closure& closure, Member& member,
                                           const std::set<VariableId>& mirrored,
                                           bool check_copies) {
  return std::make_unique<MirroredStep>(
      store, slot, mirror_, mirrored,
      MirroredStep::Role{closure.base, closure.ahead, group_.rank() == 0, check_copies}, member);
}

GroupSeat::Member::Member(GroupSeat& seat, const Closure& closure)
    : seat_(seat), number_(closure.group), sequence_(closure.sequence) {
  if (number_ != 0) seat_.line_.push_back(this);
}

GroupSeat::Member::~Member() {
  if (number_ == 0) return;
  if (!well_ && number_ == seat_.group_.number())
    seat_.group_.abort(
        {Code::kAborted, str("closure ", sequence_, " failed, or was given up"), {}});
  last_ = true;
  pass_on();
}

void GroupSeat::Member::pass_on() {
  if (!last_) return;
  std::erase(seat_.line_, this);
  seat_.changed_.notify_all();
}

rpc::Task<void> GroupSeat::Member::turn() {
  while (seat_.line_.front() != this) co_await seat_.changed_.wait();
  if (number_ != seat_.group_.number())
    throw AbortedError(str("the group of closure ", sequence_, " has ended: run it again"));
}

}  // namespace cairn::worker
