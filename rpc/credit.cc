#include "rpc/credit.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "rpc/error_wire.h"

namespace cairn::rpc {
namespace detail {

struct CreditState : std::enable_shared_from_this<CreditState> {
  struct Waiter {
    std::size_t bytes;
    kj::Own<kj::PromiseFulfiller<Credit>> fulfiller;
  };

  bool fits(std::size_t bytes) const { return in_use == 0 || in_use + bytes <= bytes_max; }
  Credit grant(std::size_t bytes) {
    in_use += bytes;
    return Credit(shared_from_this(), bytes);
  }
  void give_back(std::size_t bytes) {
    in_use -= bytes;
    serve();
  }
  void serve() {
    while (!waiters.empty()) {
      auto& first = waiters.front();
      bool wanted = first.fulfiller->isWaiting();  // dropped by its caller meanwhile?
      if (wanted && !fits(first.bytes)) return;
      auto waiter = kj::mv(first);
      waiters.pop_front();
      if (wanted) waiter.fulfiller->fulfill(grant(waiter.bytes));
    }
  }

  std::size_t bytes_max = 0;
  std::string ended;
  std::size_t in_use = 0;
  bool closed = false;
  std::deque<Waiter> waiters;
};

}  // namespace detail

Credit::Credit(std::shared_ptr<detail::CreditState> state, std::size_t bytes)
    : state_(std::move(state)), bytes_(bytes) {}
Credit::Credit(Credit&& other) noexcept
    : state_(std::move(other.state_)), bytes_(std::exchange(other.bytes_, 0)) {}
Credit& Credit::operator=(Credit&& other) noexcept {
  Credit old(std::move(*this));
  state_ = std::move(other.state_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}
Credit::~Credit() {
  if (state_) state_->give_back(bytes_);
}

CreditGate::CreditGate(std::size_t bytes_max, std::string ended)
    : state_(std::make_shared<detail::CreditState>()) {
  state_->bytes_max = bytes_max;
  state_->ended = std::move(ended);
}

CreditGate::~CreditGate() { close(); }

kj::Promise<Credit> CreditGate::acquire(std::size_t bytes) {
  if (state_->closed) return to_kj(Code::kUnavailable, state_->ended);
  if (state_->waiters.empty() && state_->fits(bytes)) return state_->grant(bytes);
  auto pair = kj::newPromiseAndFulfiller<Credit>();
  state_->waiters.push_back({bytes, kj::mv(pair.fulfiller)});
  return kj::mv(pair.promise);
}

std::size_t CreditGate::in_use() const { return state_->in_use; }

void CreditGate::close() {
  state_->closed = true;
  for (auto& waiter : state_->waiters)
    waiter.fulfiller->reject(to_kj(Code::kUnavailable, state_->ended));
  state_->waiters.clear();
}

}  // namespace cairn::rpc
