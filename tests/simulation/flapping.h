// A cluster in which a ps, or all workers, come and go: connected, lost again soon after, over and
// over, for a while or for ever.
//
// If work is done between losses, the job must end as it would have without them. If none is done,
// the program must get an error that names the flapping task, soon after ps_wait has passed since
// the last work, and the tasks may be lost only a few times until then.
#pragma once
#include "tests/simulation/run.h"

namespace cairn::simulation {

Scenario flapping_scenario(std::uint64_t seed);
Verdict run_flapping(const Scenario& scenario);

}  // namespace cairn::simulation
