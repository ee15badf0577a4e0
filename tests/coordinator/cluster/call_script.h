// CallScript: the outcome of calls to a fake task. Each is answered at once, unless the test has it
// wait or fail.
#pragma once
#include <kj/async.h>

#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rpc/loop/error_wire.h"

namespace cairn {

class CallScript {
 public:
  // From now on calls of this name wait, until let_go().
  void stall(const std::string& call) { stalled_[call]; }
  // Those that wait are answered, and later ones are answered at once.
  void let_go(const std::string& call) {
    for (auto& waiting : take(call)) waiting->fulfill();
  }
  // Those that wait fail with this error; later ones wait.
  template <typename E>
  void break_off(const std::string& call, const std::string& message) {
    if (!stalled_.contains(call)) return;
    for (auto& waiting : std::exchange(stalled_[call], {}))
      waiting->reject(rpc::to_kj(std::make_exception_ptr(E(message))));
  }
  // From now on calls of this name fail, until mend().
  template <typename E>
  void fail(const std::string& call, const std::string& message) {
    failing_[call] = std::make_exception_ptr(E(message));
  }
  void mend(const std::string& call) { failing_.erase(call); }

  // For the fake, in each call: resolves when the call is to be answered.
  kj::Promise<void> meet(const std::string& call) {
    if (auto failing = failing_.find(call); failing != failing_.end())
      return rpc::to_kj(failing->second);
    auto stalled = stalled_.find(call);
    if (stalled == stalled_.end()) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    stalled->second.push_back(kj::mv(paf.fulfiller));
    return kj::mv(paf.promise);
  }

 private:
  using Waiting = std::vector<kj::Own<kj::PromiseFulfiller<void>>>;
  Waiting take(const std::string& call) {
    auto stalled = stalled_.extract(call);
    return stalled.empty() ? Waiting() : kj::mv(stalled.mapped());
  }

  std::map<std::string, Waiting> stalled_;
  std::map<std::string, std::exception_ptr> failing_;
};

}  // namespace cairn
