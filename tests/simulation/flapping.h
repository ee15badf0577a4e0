// A cluster in which a ps, or all workers, come and go: connected, lost again soon after, over and
// over, for a while or for ever.
//
// Either work is done between two losses, and then the job ends as if nothing had been; or none is,
// and then the program gets an error that names who flaps, ps_wait after the last work and little
// later, and the tasks are lost but a few times until then.
#pragma once
#include "tests/simulation/run.h"

namespace cairn::simulation {

Scenario flapping_scenario(std::uint64_t seed);
Verdict run_flapping(const Scenario& scenario);

}  // namespace cairn::simulation
