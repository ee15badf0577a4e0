#include "coordinator/dispatch/least_loaded.h"

#include <algorithm>

namespace cairn {

// The queues are doubly linked lists through the members' own numbers: to move one from its place
// to the end of another queue changes a few numbers and allocates nothing, and this is done for
// every closure that is sent and answered.
void LeastLoaded::put(std::size_t who, std::size_t load) {
  if (who >= members_.size()) members_.resize(who + 1);
  if (load >= queues_.size()) queues_.resize(load + 1);
  Member& member = members_[who];
  // A member whose load is the same keeps its turn.
  if (member.here && member.load == load) return;
  remove(who);
  Queue& queue = queues_[load];
  member = {load, queue.last, kNobody, true};
  (queue.last == kNobody ? queue.first : members_[queue.last].behind) = who;
  queue.last = who;
  lowest_ = std::min(lowest_, load);
}

void LeastLoaded::remove(std::size_t who) {
  if (who >= members_.size() || !members_[who].here) return;
  Member& member = members_[who];
  Queue& queue = queues_[member.load];
  (member.before == kNobody ? queue.first : members_[member.before].behind) = member.behind;
  (member.behind == kNobody ? queue.last : members_[member.behind].before) = member.before;
  member = {};
}

std::optional<std::size_t> LeastLoaded::first() {
  // The mark moves up here alone, and put() moves it down, so that it never passes a queue with
  // members.
  while (lowest_ < queues_.size() && queues_[lowest_].first == kNobody) ++lowest_;
  if (lowest_ == queues_.size()) return std::nullopt;
  return queues_[lowest_].first;
}

}  // namespace cairn
