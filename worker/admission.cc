#include "worker/admission.h"

#include <algorithm>
#include <utility>

namespace cairn::worker {

struct Turnstile::State : std::enable_shared_from_this<State> {
  struct Waiter {
    kj::Own<kj::PromiseFulfiller<Pass>> fulfiller;
    Company company;
  };
  bool room(Company company) const {
    return company == Company::kAlone ? inside == 0 : inside < places && !alone;
  }
  Pass admit(Company company) {
    ++inside;
    alone = company == Company::kAlone;
    return Pass(shared_from_this());
  }
  void serve() {
    while (!waiters.empty()) {
      if (!waiters.front().fulfiller->isWaiting()) {  // it gave up
        waiters.pop_front();
        continue;
      }
      if (!room(waiters.front().company)) return;
      auto next = std::move(waiters.front());
      waiters.pop_front();
      next.fulfiller->fulfill(admit(next.company));
    }
  }
  std::size_t places = 1;
  std::size_t inside = 0;
  bool alone = false;  // the one inside wants no company
  std::deque<Waiter> waiters;
};

Turnstile::Turnstile(std::size_t places) : state_(std::make_shared<State>()) {
  state_->places = places;
}

kj::Promise<Turnstile::Pass> Turnstile::enter(Company company) {
  if (state_->waiters.empty() && state_->room(company)) return state_->admit(company);
  auto pair = kj::newPromiseAndFulfiller<Pass>();
  state_->waiters.push_back({kj::mv(pair.fulfiller), company});
  state_->serve();  // those ahead may all have given up
  return kj::mv(pair.promise);
}

void Turnstile::set_places(std::size_t places) {
  state_->places = places;
  state_->serve();
}

std::size_t Turnstile::inside() const { return state_->inside; }
std::size_t Turnstile::waiting() const { return state_->waiters.size(); }

Turnstile::Pass& Turnstile::Pass::operator=(Pass&& other) noexcept {
  leave();
  state_ = std::move(other.state_);
  return *this;
}

void Turnstile::Pass::leave() noexcept {
  auto state = std::move(state_);
  if (!state) return;
  --state->inside;
  state->alone = false;
  state->serve();
}

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

void PushGate::tell_if_idle() {
  if (!pushing_.empty() && held()) return;
  for (auto& holder : std::exchange(holders_, {})) holder->fulfill();
}

}  // namespace cairn::worker
