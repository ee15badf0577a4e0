// Shards know from the coordinator alone which closures there are, and which of them have ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

storage::Manifest newest_manifest(SimulatedCluster& cluster) {
  return storage::read_manifest(
      cluster.disk(), storage::CheckpointFolder(cluster.disk(), "/checkpoints").latest()->path);
}

Function add_one(Strategy& strategy, const Counters& counters) {
  return strategy.function([&counters] { counters.v.assign_add(Array(1.0f)); });
}

TEST(Announcements, AreOfWhatHasEndedSoThatShardsRememberLittle) {
  SimulatedCluster cluster({.ps = 2, .workers = 2});
  ClusterCoordinator coordinator(cluster.strategy());
  const Counters counters(cluster.strategy());
  Function add = add_one(cluster.strategy(), counters);
  for (int i = 0; i < 50; ++i) coordinator.schedule(add);
  coordinator.join(kPatience);
  cluster.run_for(std::chrono::seconds(1));
  coordinator.save({.folder = "/checkpoints"});

  const storage::Manifest manifest = newest_manifest(cluster);
  EXPECT_GE(manifest.low_watermark, 50u);
  EXPECT_THAT(manifest.applied, ::testing::IsEmpty());
}

TEST(Announcements, ComeInTimeAgainToAPsThatWasRebuilt) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  ClusterCoordinator coordinator(cluster.strategy());
  const Counters counters(cluster.strategy());
  Function add = add_one(cluster.strategy(), counters);

  for (int i = 0; i < 10; ++i) coordinator.schedule(add);
  coordinator.join(kPatience);
  EXPECT_EQ(counters.value_of_v(), 10.0f);

  coordinator.save({.folder = "/checkpoints"});
  cluster.kill_ps(0);
  cluster.run_for(std::chrono::seconds(2));
  cluster.start_ps(0);
  for (int i = 0; i < 10; ++i) coordinator.schedule(add);
  coordinator.join(kPatience);
  EXPECT_EQ(counters.value_of_v(), 20.0f);
}

}  // namespace
}  // namespace cairn
