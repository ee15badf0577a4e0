#include "worker/lane/admission.h"

#include <algorithm>
#include <utility>

namespace cairn::worker {

kj::Promise<void> ComputeTurns::turn() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  turns_.push_back(kj::mv(pair.fulfiller));
  if (!std::exchange(pumping_, true)) tasks_.spawn("computing", pump());
  return kj::mv(pair.promise);
}

// Whose turn it is computes before this yields again: its event stands before the loop's idle ones.
rpc::Task<void> ComputeTurns::pump() {
  while (!turns_.empty()) {
    co_await reactor_.yield();
    while (!turns_.empty() && !turns_.front()->isWaiting()) turns_.pop_front();
    if (turns_.empty()) break;
    auto next = kj::mv(turns_.front());
    turns_.pop_front();
    next->fulfill();
  }
  pumping_ = false;
}

// A closure that has begun to push is let through even while the gate is held: the holder waits for
// it, and a checkpoint must not see half of its pushes.
kj::Promise<void> PushGate::pass(const void* who) {
  if (held() && std::find(pushing_.begin(), pushing_.end(), who) == pushing_.end()) {
    auto pair = kj::newPromiseAndFulfiller<void>();
    waiting_.push_back({who, kj::mv(pair.fulfiller)});
    return kj::mv(pair.promise);
  }
  pushing_.push_back(who);
  return kj::READY_NOW;
}

void PushGate::leave(const void* who) {
  std::erase(pushing_, who);
  tell_if_idle();
}

kj::Promise<void> PushGate::hold(const void* holder) {
  held_by_.insert(holder);
  if (pushing_.empty()) return kj::READY_NOW;
  auto pair = kj::newPromiseAndFulfiller<void>();
  holders_.push_back(kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
}

void PushGate::release(const void* holder) {
  if (held_by_.erase(holder) > 0 && !held()) release_all();
}

void PushGate::release_all() {
  held_by_.clear();
  auto waiting = std::move(waiting_);
  waiting_.clear();
  std::erase_if(waiting, [](Held& held) { return !held.go->isWaiting(); });
  // before any goes on: it may end, and another hold begin
  for (auto& next : waiting) pushing_.push_back(next.who);
  for (auto& next : waiting) next.go->fulfill();
  tell_if_idle();
}

// Holders wait for those inside to leave. When the last hold is gone there is nothing to wait for.
void PushGate::tell_if_idle() {
  if (!pushing_.empty() && held()) return;
  for (auto& holder : std::exchange(holders_, {})) holder->fulfill();
}

}  // namespace cairn::worker
