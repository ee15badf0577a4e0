#include "rpc/loop/sim_offload.h"

#include <algorithm>

namespace cairn::rpc {

// Work begins when what the lane did before has ended, as on a thread; the weak pointer keeps what
// is still scheduled from running after the simulated process has died.
void SimOffload::submit(std::size_t lane, std::function<void()> work) {
  const auto delay =
      Duration(random_.below(static_cast<std::uint64_t>(delay_max_.count()) + 1)) + slower_;
  Duration& free = busy_until_[lane];
  free = std::max(free, reactor_.now()) + delay;
  reactor_.schedule(free - reactor_.now(),
                    [alive = std::weak_ptr<bool>(alive_), work = std::move(work)] {
                      if (!alive.expired()) work();
                    });
}

}  // namespace cairn::rpc
