#include "collective/network/inbox.h"

#include "core/base/error.h"

namespace cairn {

Inbox::Deposit::Deposit(Inbox& inbox, Key key, Parcel parcel)
    : inbox(inbox), key(key), parcel(std::move(parcel)) {
  inbox.deposits_.emplace(key, this);
  inbox.waiting_bytes_[key.from] += this->parcel.data.size() + kParcelBytes;
}

Inbox::Deposit::~Deposit() {
  inbox.waiting_bytes_[key.from] -= parcel.data.size() + kParcelBytes;
  const auto found = inbox.deposits_.find(key);
  if (found != inbox.deposits_.end() && found->second == this) inbox.deposits_.erase(found);
}

// The promise is the call's answer, and the message lives as long as the call. So values are read
// where they arrived, and a sender whose values are not yet used is held back by its own window.
kj::Promise<void> Inbox::put(int from, Parcel parcel) {
  const Key key{from, parcel.call, parcel.part, parcel.step};
  if (deposits_.contains(key))
    throw InvalidArgumentError(str("rank ", from, " sent part ", key.part, ", step ", key.step,
                                   " of call ", key.call, " twice"));
  if (waiting_bytes_[from] + parcel.data.size() > kWaitingBytesMax)
    throw ResourceExhaustedError(
        str("rank ", from, " has sent ", waiting_bytes_[from],
            " bytes that this member has no use for yet, above the bound of ", kWaitingBytesMax));
  auto deposit = kj::heap<Deposit>(*this, key, std::move(parcel));
  auto used = kj::newPromiseAndFulfiller<void>();
  deposit->used = kj::mv(used.fulfiller);
  if (const auto waiter = waiters_.find(key); waiter != waiters_.end()) {
    auto told = kj::mv(waiter->second);
    waiters_.erase(waiter);
    told->fulfill();
  }
  return used.promise.attach(kj::mv(deposit));
}

kj::Promise<void> Inbox::arrival(Key key) {
  if (deposits_.contains(key)) return kj::READY_NOW;
  auto told = kj::newPromiseAndFulfiller<void>();
  waiters_[key] = kj::mv(told.fulfiller);
  return kj::mv(told.promise);
}

bool Inbox::waits_for(int from) const {
  const auto first = waiters_.lower_bound({.from = from});
  return first != waiters_.end() && first->first.from == from;
}

// Between the arrival and its use the sender's connection may end, and its message goes with it.
void Inbox::taken_back(const Key& key) {
  throw UnavailableError(str("rank ", key.from, " was lost while its values were to be used"));
}

}  // namespace cairn
