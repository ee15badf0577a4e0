// Random operations over a cluster: a closure's numbers do not tell on which worker or lane it ran,
// nor how often it was begun.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

constexpr int kClosures = 40;

struct Members {
  int workers;
  std::uint32_t lanes;
  int killed = -1;  // a worker that dies on the way and comes back
};

// The numbers that each closure drew: half of them update a variable, and so have a global step.
std::vector<std::vector<float>> numbers_drawn(const Members& members) {
  SimulatedCluster cluster({.ps = 1, .workers = members.workers, .lanes = members.lanes});
  ClusterCoordinator coordinator(cluster.strategy());
  Variable v = cluster.strategy().create_variable(
      {.name = "v", .shape = {}, .initializer = Initializer::zeros()});
  Function update = cluster.strategy().function([&] {
    v.assign_add(Array(1.0f));
    return dropout(random_normal({8}), 0.5f);
  });
  Function draw = cluster.strategy().function([] { return random_uniform({8}); });
  std::vector<RemoteValue> values;
  for (int i = 0; i < kClosures; ++i)
    values.push_back(coordinator.schedule(i % 2 == 0 ? update : draw));
  if (members.killed >= 0) {
    cluster.run_for(std::chrono::milliseconds(3));
    cluster.kill_worker(members.killed);
    cluster.run_for(std::chrono::milliseconds(20));
    cluster.start_worker(members.killed);
  }
  coordinator.join(kPatience);
  std::vector<std::vector<float>> drawn;
  for (const RemoteValue& value : values) {
    Tensor numbers = value.get(kPatience);
    drawn.emplace_back(numbers.values<float>().begin(), numbers.values<float>().end());
  }
  return drawn;
}

TEST(RandomOperationsOnWorkers, DrawTheSameForAnyNumberOfWorkersAndLanesAndAfterARetry) {
  const std::vector<std::vector<float>> alone = numbers_drawn({.workers = 1, .lanes = 1});
  EXPECT_EQ(numbers_drawn({.workers = 3, .lanes = 1}), alone);
  EXPECT_EQ(numbers_drawn({.workers = 2, .lanes = 3}), alone);
  for (int killed : {0, 1, 2})
    EXPECT_EQ(numbers_drawn({.workers = 3, .lanes = 2, .killed = killed}), alone)
        << "worker " << killed << " killed";
}

TEST(RandomOperationsOnWorkers, DrawAnewForEachClosure) {
  std::vector<std::vector<float>> drawn = numbers_drawn({.workers = 2, .lanes = 2});
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::adjacent_find(drawn.begin(), drawn.end()), drawn.end());
}

}  // namespace
}  // namespace cairn
