// A checkpoint that save_model() takes its weights from is gone afterwards: nothing may be built
// upon it.
#include <gtest/gtest.h>

#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

TEST(PassingCheckpoint, APsThatIsLostIsRebuiltFromTheLastingOneBefore) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  ParameterServerStrategy& strategy = cluster.strategy();
  Counters counters(strategy);
  ClusterCoordinator coordinator(strategy);
  Function add = strategy.function([&] { counters.v.assign_add(Array(1.0f)); });
  coordinator.schedule(add);
  coordinator.join(kPatience);
  const std::string lasting = strategy.save({.folder = "/lasting"});
  coordinator.schedule(add);
  coordinator.join(kPatience);
  const std::string passing = strategy.save({.folder = "/passing", .lasting = false});
  EXPECT_TRUE(cluster.disk().exists(passing + "/MANIFEST.json"));
  EXPECT_EQ(coordinator.stats().last_checkpoint, lasting);
  cluster.disk().remove_tree("/passing");

  cluster.kill_ps(0);
  cluster.run_for(std::chrono::seconds(2));
  cluster.start_ps(0);
  cluster.run_for(std::chrono::seconds(10));

  EXPECT_EQ(counters.value_of_v(), 1.0f) << "the update since the lasting checkpoint is lost";
}

}  // namespace
}  // namespace cairn
