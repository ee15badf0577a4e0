// SimReactor: a reactor with virtual time, on which a whole cluster runs in one thread.
//
// Time stands still while anything is runnable, and jumps to the next timer or event when nothing
// is. Equal times keep the order of scheduling, so a run is a function of its inputs. Waiting for
// something that can never happen throws InternalError instead of hanging.
#pragma once
#include <kj/async.h>

#include <functional>
#include <map>
#include <memory>

#include "rpc/loop/reactor.h"

namespace cairn::rpc {

class SimReactor final : public Reactor {
 public:
  SimReactor();
  ~SimReactor() noexcept(false) override;

  void post(Work work) override;
  kj::Timer& timer() override;
  kj::WaitScope& scope() override;
  Duration now() const override;
  Duration idle() const override { return now(); }
  bool simulated() const override { return true; }
  Duration wall_jump() const override { return wall_jump_; }
  // Sets the wall clock `by` forward or back; monotonic time goes on as before.
  void jump_wall(Duration by) { wall_jump_ += by; }
  kj::Promise<void> yield() override;

  // Runs `work` at now() + `delay`; same time: in the order of these calls. The network's
  // deliveries come this way.
  void schedule(Duration delay, Work work);
  // Lets `duration` of virtual time pass, running all that falls into it.
  void advance(Duration duration);
  // Runs until nothing is runnable at the present time; time does not move.
  void run_ready();
  // How many events and timers have fired, as a cheap fingerprint of a run.
  std::uint64_t steps() const;

 private:
  class Port;
  std::unique_ptr<Port> port_;
  Duration wall_jump_{0};
  std::unique_ptr<kj::EventLoop> loop_;
  std::unique_ptr<kj::WaitScope> scope_;
};

}  // namespace cairn::rpc
