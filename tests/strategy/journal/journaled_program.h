// A program whose coordinator has a journal: each start of it makes the same.
#pragma once
#include <cstdint>
#include <numeric>
#include <vector>

#include "testing/simulated_cluster.h"

namespace cairn {

// A program, and all that it makes each time that it starts.
struct Program {
  explicit Program(SimulatedCluster& cluster, const Dataset& data = numbers(Counters::kRows))
      : counters(cluster.strategy()), coordinator(cluster.strategy()) {
    batches = coordinator.create_shared_dataset(data);
    add = cluster.strategy().function(
        [this](const Iterator& input) { counters.add_one(input.get_next().features["value"]); });
  }
  // Closures, and waits for them.
  void run(int closures) {
    for (int i = 0; i < closures; ++i) coordinator.schedule(add, {batches});
    coordinator.join(kPatience);
  }
  std::int64_t step() { return coordinator.stats().global_step; }
  float sum_of_rows() const {
    const std::vector<float> rows = counters.value_of_rows();
    return std::accumulate(rows.begin(), rows.end(), 0.0f);
  }

  Counters counters;
  ClusterCoordinator coordinator;
  PerWorkerDatasetHandle batches;
  Function add;
};

}  // namespace cairn
