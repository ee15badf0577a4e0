#include "worker/doing.h"

namespace cairn::worker {

std::string_view doing_text(Doing doing) {
  switch (doing) {
    case Doing::kWaitingToRead: return "waiting to read its data";
    case Doing::kReading: return "reading its data";
    case Doing::kWaitingForOthers: return "waiting for those before it";
    case Doing::kConnecting: return "connecting to";
    case Doing::kWaitingToPull: return "waiting for credit to pull from";
    case Doing::kPulling: return "pulling from";
    case Doing::kWaitingToPush: return "waiting for credit to push to";
    case Doing::kPushing: return "pushing to";
    case Doing::kWaitingToCompute: return "waiting to compute";
    case Doing::kComputing: return "computing";
    case Doing::kHeld: return "held for a checkpoint";
  }
  return "";
}

bool has_shard(Doing doing) { return doing >= Doing::kConnecting && doing <= Doing::kPushing; }

// Another thread may write meanwhile. Each member is read whole but not all at one moment, which
// does for a status: what was seen is at worst a line that mixes two moments.
bool DoingSlot::read(Seen& out) const {
  const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
  if (sequence == 0) return false;
  const std::uint64_t shard = shard_.load(std::memory_order_relaxed);
  out.sequence = sequence - 1;
  out.doing = doing_.load(std::memory_order_relaxed);
  out.at = {static_cast<std::uint32_t>(shard >> 32), static_cast<std::uint32_t>(shard)};
  out.since = Duration(since_.load(std::memory_order_relaxed));
  return true;
}

DoingBoard::DoingBoard() {
  for (DoingSlot& slot : slots_) free_.push_back(&slot);
}

DoingSlot* DoingBoard::take() {
  if (free_.empty()) return nullptr;
  DoingSlot* const slot = free_.back();
  free_.pop_back();
  return slot;
}

void DoingBoard::give(DoingSlot* slot) {
  if (slot == nullptr) return;
  slot->end();
  free_.push_back(slot);
}

std::vector<DoingSlot::Seen> DoingBoard::seen() const {
  std::vector<DoingSlot::Seen> all;
  DoingSlot::Seen one;
  for (const DoingSlot& slot : slots_)
    if (slot.read(one)) all.push_back(one);
  return all;
}

CallsUnderWay::Id CallsUnderWay::begin(Doing doing, ShardNumber at, Duration now) {
  calls_.push_back({doing, at});
  if (calls_.size() == 1) tell(now);
  return first_ + calls_.size() - 1;
}

void CallsUnderWay::set(Id call, Doing doing, Duration now) {
  calls_[call - first_].doing = doing;
  if (call == first_) tell(now);
}

// Calls end in any order and the oldest is the one that is told of. Those that ended before it are
// only marked, so that a call's number stays its place in the queue.
void CallsUnderWay::end(Id call, Duration now) {
  calls_[call - first_].over = true;
  if (call != first_) return;
  while (!calls_.empty() && calls_.front().over) {
    calls_.pop_front();
    ++first_;
  }
  if (!calls_.empty()) tell(now);
}

void CallsUnderWay::tell(Duration now) const {
  if (slot_ != nullptr) slot_->set(calls_.front().doing, now, calls_.front().at);
}

}  // namespace cairn::worker
