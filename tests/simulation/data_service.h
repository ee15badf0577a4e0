// A run of the data service under faults: a dispatcher with a journal, data workers, and two
// consumers of one job in mode DYNAMIC.
#pragma once
#include "tests/simulation/run.h"

namespace cairn::simulation {

// By seed modulo 5: no fault; the dispatcher killed; a data worker killed too; more faults beside
// these, of connections or workers; faults of connections alone.
Scenario data_service_scenario(std::uint64_t seed);
Verdict run_data_service(const Scenario& scenario);

}  // namespace cairn::simulation
