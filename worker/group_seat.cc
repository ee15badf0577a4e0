#include "worker/group_seat.h"

#include "worker/mirrored_step.h"

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
std::unique_ptr<StepStore> GroupSeat::open(RemoteStore& store, DoingSlot* slot,
                                           const Closure& closure,
                                           const std::set<VariableId>& mirrored) {
  return std::make_unique<MirroredStep>(store, slot, mirror_, mirrored, closure.base,
                                        group_.rank() == 0);
}

GroupSeat::Member::~Member() {
  if (number_ != 0 && number_ == group_.number())
    group_.abort({Code::kAborted, str("closure ", sequence_, " failed, or was given up"), {}});
}

}  // namespace cairn::worker
