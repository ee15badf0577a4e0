#include "worker/lane/group_membership.h"

namespace cairn::worker {

void GroupMembership::leave() {
  group_.leave();
  mirror_.forget();
}

std::int32_t GroupMembership::replicas_of(const ClosureRun& closure) const {
  if (closure.group == 0) return 1;
  if (closure.group != group_.number())
    throw AbortedError(str("closure ", closure.sequence, " is of group ", closure.group,
                           ", and this lane is in ", group_.number(), ": run it again"));
  return static_cast<std::int32_t>(group_.size());
}

// The first member of a group pushes to the ps the updates that all members share.
std::unique_ptr<StepStore> GroupMembership::open(RemoteStore& store, ActivitySlot* slot,
                                                 const ClosureRun& closure, Member& member,
                                                 const std::set<VariableId>& mirrored,
                                                 bool check_copies) {
  return std::make_unique<MirroredStep>(
      store, slot, mirror_, mirrored,
      MirroredStep::Role{closure.base, closure.ahead, group_.rank() == 0, check_copies}, member);
}

GroupMembership::Member::Member(GroupMembership& membership, const ClosureRun& closure)
    : membership_(membership), number_(closure.group), sequence_(closure.sequence) {
  if (number_ != 0) membership_.line_.push_back(this);
}

GroupMembership::Member::~Member() {
  if (number_ == 0) return;
  if (!well_ && number_ == membership_.group_.number())
    membership_.group_.abort(
        {Code::kAborted, str("closure ", sequence_, " failed, or was given up"), {}});
  last_ = true;
  pass_on();
}

void GroupMembership::Member::pass_on() {
  if (!last_) return;
  std::erase(membership_.line_, this);
  membership_.changed_.notify_all();
}

rpc::Task<void> GroupMembership::Member::turn() {
  while (membership_.line_.front() != this) co_await membership_.changed_.wait();
  if (number_ != membership_.group_.number())
    throw AbortedError(str("the group of closure ", sequence_, " has ended: run it again"));
}

}  // namespace cairn::worker
