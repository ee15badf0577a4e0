// The simulated user's program: three variables or four, closures that add one to each, and what must come of it.
#pragma once
#include <cstdint>
#include <numeric>
#include <vector>

#include "coordinator/cluster_coordinator.h"
#include "tests/simulation/scenario.h"

namespace cairn::simulation {

struct Program {
  Variable v, w, rows, wide;
  ClusterCoordinator coordinator;
  PerWorkerDatasetHandle data;
  Function add;

  Program(ParameterServerStrategy& strategy, const Scenario& scenario);
};

struct Values {
  std::int64_t v = 0, w = 0;
  std::vector<std::int64_t> rows, wide;
  std::int64_t sum() const { return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}); }
};

Values values_of(const Program& program);
// How often each row is added to when every element of the data is taken once.
std::vector<std::int64_t> expected_rows(const Scenario& scenario);

}  // namespace cairn::simulation
