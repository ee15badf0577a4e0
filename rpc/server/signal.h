// Signal: "something changed, look again", for coroutines of one loop.
//
//   while (!ready()) co_await changed.wait();
#pragma once
#include <kj/async.h>

#include <vector>

namespace cairn::rpc {

// Thread: one loop's. Waiters left when it is destroyed are cancelled with it (they fail as a
// broken promise).
class Signal {
 public:
  kj::Promise<void> wait() {
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiters_.push_back(kj::mv(paf.fulfiller));
    return kj::mv(paf.promise);
  }
  void notify_all() {
    auto waiters = kj::mv(waiters_);
    waiters_.clear();
    for (auto& waiter : waiters) waiter->fulfill();
  }

 private:
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiters_;
};

}  // namespace cairn::rpc
