// Drawing a scenario from its seed.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/simulation/scenario.h"

namespace cairn::simulation {

class Draw {
 public:
  Draw(std::uint64_t seed, const char* what) : random_(random_key(seed, what)) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most - least + 1)));
  }
  int index(int count) { return static_cast<int>(between(0, count - 1)); }
  // Short times as likely as long ones: every scale meets every other.
  Duration time(Duration least, Duration most) {
    auto low = static_cast<double>(least.count()), high = static_cast<double>(most.count());
    return Duration(static_cast<std::int64_t>(low * std::pow(high / low, random_.uniform())));
  }

 private:
  Random random_;
};

// The coordinator, a ps or a worker.
std::string host(Draw& draw, const Scenario& scenario);
// One of `kinds`, at any time of the job, between any hosts that such a fault may have.
Fault draw_fault(Draw& draw, const Scenario& scenario, const std::vector<Fault::Kind>& kinds);
// Faults that come together where a machine room loses power, or where the cause that killed a
// process is still there when it is back.
std::vector<Fault> draw_blow(Draw& draw, const Scenario& scenario);

}  // namespace cairn::simulation
