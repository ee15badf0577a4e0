#include "worker/rows/activity.h"

namespace cairn::worker {

// Another thread may write meanwhile. Each member is read whole but not all at one moment, which
// does for a status: what was seen is at worst a line that mixes two moments.
bool ActivitySlot::read(Seen& out) const {
  const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
  if (sequence == 0) return false;
  const std::uint64_t shard = shard_.load(std::memory_order_relaxed);
  out.sequence = sequence - 1;
  out.activity = activity_.load(std::memory_order_relaxed);
  out.at = {static_cast<std::uint32_t>(shard >> 32), static_cast<std::uint32_t>(shard)};
  out.since = Duration(since_.load(std::memory_order_relaxed));
  return true;
}

ActivityBoard::ActivityBoard() {
  for (ActivitySlot& slot : slots_) free_.push_back(&slot);
}

ActivitySlot* ActivityBoard::take() {
  if (free_.empty()) return nullptr;
  ActivitySlot* const slot = free_.back();
  free_.pop_back();
  return slot;
}

void ActivityBoard::give(ActivitySlot* slot) {
  if (slot == nullptr) return;
  slot->end();
  free_.push_back(slot);
}

std::vector<ActivitySlot::Seen> ActivityBoard::seen() const {
  std::vector<ActivitySlot::Seen> all;
  ActivitySlot::Seen one;
  for (const ActivitySlot& slot : slots_)
    if (slot.read(one)) all.push_back(one);
  return all;
}

CallsUnderWay::Id CallsUnderWay::begin(Activity activity, ShardNumber at, Duration now) {
  calls_.push_back({activity, at});
  if (calls_.size() == 1) show(now);
  return first_ + calls_.size() - 1;
}

void CallsUnderWay::set(Id call, Activity activity, Duration now) {
  calls_[call - first_].activity = activity;
  if (call == first_) show(now);
}

// Calls end in any order and the slot shows the oldest. Those that ended before it are
// only marked, so that a call's number stays its place in the queue.
void CallsUnderWay::end(Id call, Duration now) {
  calls_[call - first_].over = true;
  if (call != first_) return;
  while (!calls_.empty() && calls_.front().over) {
    calls_.pop_front();
    ++first_;
  }
  if (!calls_.empty()) show(now);
}

void CallsUnderWay::show(Duration now) const {
  if (slot_ != nullptr) slot_->set(calls_.front().activity, now, calls_.front().at);
}

}  // namespace cairn::worker
