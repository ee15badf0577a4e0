#include "coordinator/least_loaded.h"

#include <algorithm>

namespace cairn {

void LeastLoaded::put(std::size_t who, std::size_t load) {
  if (who >= members_.size()) members_.resize(who + 1);
  if (load >= queues_.size()) queues_.resize(load + 1);
  Member& member = members_[who];
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
  while (lowest_ < queues_.size() && queues_[lowest_].first == kNobody) ++lowest_;
  if (lowest_ == queues_.size()) return std::nullopt;
  return queues_[lowest_].first;
}

}  // namespace cairn
