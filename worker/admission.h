// Admission: who may go on, and when. Small queues of one loop, from which a lane builds its order
// of work.
//   Thread  one loop's.
#pragma once
#include <kj/async.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <set>

#include "rpc/reactor.h"
#include "rpc/task_group.h"

namespace cairn::worker {

enum class Company : std::uint8_t { kShared, kAlone };  // kAlone: nobody else inside meanwhile

// At most `places` inside, first come first served.
class Turnstile {
  struct State;

 public:
  // A place inside, left on destruction.
  class Pass {
   public:
    Pass() = default;
    explicit Pass(std::shared_ptr<State> state) : state_(std::move(state)) {}
    Pass(Pass&&) noexcept = default;
    Pass& operator=(Pass&& other) noexcept;
    ~Pass() noexcept { leave(); }
    void leave() noexcept;

   private:
    std::shared_ptr<State> state_;
  };

  explicit Turnstile(std::size_t places);
  kj::Promise<Pass> enter(Company company = Company::kShared);
  void set_places(std::size_t places);
  std::size_t inside() const;
  std::size_t waiting() const;

 private:
  std::shared_ptr<State> state_;
};

// One run of compute at a time, each after the loop has sent and received what it could.
class ComputeTurns {
 public:
  explicit ComputeTurns(rpc::Reactor& reactor) : reactor_(reactor) {}
  // Resolves later, in the order of asking; who drops the promise is passed over. Compute before
  // the next wait.
  kj::Promise<void> turn();

 private:
  rpc::Task<void> pump();
  rpc::Reactor& reactor_;
  std::deque<kj::Own<kj::PromiseFulfiller<void>>> turns_;
  bool pumping_ = false;
  rpc::TaskGroup tasks_;
};

// Counts closures between their first push and their end, and can hold back those before it.
class PushGate {
 public:
  // Resolves now, or at release: `who` counts as pushing from then on. Dropping the promise while
  // it is held back withdraws the wish.
  kj::Promise<void> pass(const void* who);
  void leave(const void* who);  // at its end, whether it was pushing or not

  // Holds pushes from now on, until everybody who holds them has released them; resolves when
  // nobody is pushing. A release in between resolves it too. A release by somebody who does not
  // hold them changes nothing.
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
