#include "rpc/loop/gate.h"

#include <deque>
#include <utility>

#include "rpc/loop/error_wire.h"

namespace cairn::rpc {

struct Gate::State : std::enable_shared_from_this<State> {
  struct Waiter {
    std::size_t units;
    Company company;
    kj::Own<kj::PromiseFulfiller<Pass>> fulfiller;
  };

  // An empty gate admits any wish; otherwise one above the limit would wait forever.
  bool fits(std::size_t units, Company company) const {
    return inside == 0 || (company == Company::kShared && !alone && inside + units <= limit);
  }
  Pass admit(std::size_t units, Company company) {
    inside += units;
    alone = company == Company::kAlone;
    return Pass(shared_from_this(), units);
  }
  void give_back(std::size_t units) {
    inside -= units;
    alone = false;  // an entry that was alone is the one that left
    serve();
  }
  // Only the first one in the queue may go: to let a small wish overtake would starve a large one.
  void serve() {
    while (!waiters.empty()) {
      Waiter& first = waiters.front();
      const bool wanted = first.fulfiller->isWaiting();  // or its promise was dropped meanwhile
      if (wanted && !fits(first.units, first.company)) return;
      Waiter next = kj::mv(first);
      waiters.pop_front();
      if (wanted) next.fulfiller->fulfill(admit(next.units, next.company));
    }
  }

  std::size_t limit = 0;
  std::string closed_text;
  std::size_t inside = 0;
  bool alone = false, closed = false;
  std::deque<Waiter> waiters;
};

Gate::Pass::Pass(Pass&& other) noexcept
    : state_(std::move(other.state_)), units_(std::exchange(other.units_, 0)) {}

Gate::Pass& Gate::Pass::operator=(Pass&& other) noexcept {
  leave();
  state_ = std::move(other.state_);
  units_ = std::exchange(other.units_, 0);
  return *this;
}

// The pass is emptied first, so that the destructor, which calls this again, gives nothing back
// twice.
void Gate::Pass::leave() noexcept {
  if (const auto state = std::move(state_)) state->give_back(std::exchange(units_, 0));
}

Gate::Gate(std::size_t limit, std::string closed) : state_(std::make_shared<State>()) {
  state_->limit = limit;
  state_->closed_text = std::move(closed);
}

Gate::~Gate() { close(); }

kj::Promise<Gate::Pass> Gate::enter(std::size_t units, Company company) {
  if (state_->closed) return to_kj(Code::kUnavailable, state_->closed_text);
  state_->serve();  // those ahead may all have given up
  if (state_->waiters.empty() && state_->fits(units, company)) return state_->admit(units, company);
  auto pair = kj::newPromiseAndFulfiller<Pass>();
  state_->waiters.push_back({units, company, kj::mv(pair.fulfiller)});
  return kj::mv(pair.promise);
}

void Gate::set_limit(std::size_t limit) {
  state_->limit = limit;
  state_->serve();
}

// KJ runs nothing from within fulfill() or reject(): what is awaited continues on a later turn of
// the loop, so the list does not change during this loop, nor during that of serve().
void Gate::close() {
  state_->closed = true;
  for (auto& waiter : state_->waiters)
    waiter.fulfiller->reject(to_kj(Code::kUnavailable, state_->closed_text));
  state_->waiters.clear();
}

std::size_t Gate::inside() const { return state_->inside; }
std::size_t Gate::waiting() const { return state_->waiters.size(); }

}  // namespace cairn::rpc
