// Admission: who may go on, and when. Two queues of one loop from which, with rpc::Gate, a lane
// builds its order of work.
//   Thread  one loop's.
#pragma once
#include <kj/async.h>

#include <cstddef>
#include <deque>
#include <set>
#include <vector>

#include "rpc/loop/reactor.h"
#include "rpc/loop/task_group.h"

namespace cairn::worker {

// One run of compute at a time, each after the loop has sent and received what it could, so that
// messages never wait for a computation that could as well come later.
//
//   co_await computing.turn();
//   compute();   // before the next wait
class ComputeTurns {
 public:
  explicit ComputeTurns(rpc::Reactor& reactor) : reactor_(reactor) {}
  // Resolves later, in the order of asking; a dropped promise is passed over.
  kj::Promise<void> turn();

 private:
  rpc::Task<void> pump();
  rpc::Reactor& reactor_;
  std::deque<kj::Own<kj::PromiseFulfiller<void>>> turns_;
  bool pumping_ = false;
  rpc::TaskGroup tasks_;
};

// Counts closures between their first push and their end, and can hold back those that have not
// pushed yet: the cut of a checkpoint must not go through the middle of a closure.
//
//   co_await gate.pass(this);   // before the first push; gate.leave(this) at the closure's end
//   co_await gate.hold(me);     // no closure is pushing, and none begins before gate.release(me)
class PushGate {
 public:
  // Resolves now, or at release: `who` counts as pushing from then on. Dropping the promise while
  // it is held back withdraws the wish.
  kj::Promise<void> pass(const void* who);
  void leave(const void* who);  // at its end, whether it was pushing or not

  // Holds pushes from now on, until all its holders have released them; resolves when no closure is
  // pushing. A release in between resolves it too. A release by a caller that does not hold them
  // changes nothing.
  kj::Promise<void> hold(const void* holder = nullptr);
  void release(const void* holder = nullptr);
  void release_all();
  bool held() const { return !held_by_.empty(); }
  std::size_t pushing() const { return pushing_.size(); }

 private:
  struct Held {
    const void* who;
    kj::Own<kj::PromiseFulfiller<void>> go;
  };
  void tell_if_idle();
  std::set<const void*> held_by_;
  std::vector<const void*> pushing_;
  std::deque<Held> waiting_;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> holders_;
};

}  // namespace cairn::worker
