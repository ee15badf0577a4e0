// Shards of a variable that does not keep all rows: some are not admitted, some go for good. They
// are trained, saved as full checkpoints and deltas while they are trained on, and restored onto
// other numbers of shards; saves fail, and some are of the moment alone.
//
// Every checkpoint must restore each row to what it was at the cut: one that had gone, or had never
// been admitted, to its initial value.
#pragma once
#include "tests/simulation/run.h"

namespace cairn::simulation {

Scenario turnover_scenario(std::uint64_t seed);
Verdict run_turnover(const Scenario& scenario);

}  // namespace cairn::simulation
