// A run of the data service under faults: a dispatcher with a journal, data workers, and two
// consumers of one job in mode DYNAMIC.
#pragma once
#include "tests/simulation/run.h"

namespace cairn::simulation {

// Of four seeds one has no fault, one has the dispatcher killed alone, one a data worker and the
// dispatcher; one has connections that fail beside them.
Scenario data_service_scenario(std::uint64_t seed);
Verdict run_data_service(const Scenario& scenario);

}  // namespace cairn::simulation
