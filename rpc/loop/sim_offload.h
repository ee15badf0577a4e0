// SimOffload: one simulated process's other threads, whose delays come from a seed.
#pragma once
#include <map>

#include "core/base/offload.h"
#include "core/base/random.h"
#include "rpc/loop/sim_reactor.h"

namespace cairn::rpc {

// Work runs on the loop after a delay uniform in [0, delay_max]; work of one lane in order.
//   Lifetime  what has not run when the object goes never runs, as in a process that was killed.
class SimOffload final : public Offload {
 public:
  SimOffload(SimReactor& reactor, std::uint64_t seed, Duration delay_max)
      : reactor_(reactor), random_(seed), delay_max_(delay_max) {}
  void submit(std::size_t lane, std::function<void()> work) override;
  // From now on every piece of work takes this much longer: a disk that has become slow.
  void slow_down(Duration by) { slower_ = by; }

 private:
  SimReactor& reactor_;
  Random random_;
  Duration delay_max_;
  Duration slower_{0};
  std::map<std::size_t, Duration> busy_until_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace cairn::rpc
