// A coordinator dies, and another one goes on from what it saved, whatever happens meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::Each;

// A coordinator's life, and the next one's on what it saved: a variable that the next one makes
// late is restored late.
struct Successor {
  SimulatedCluster cluster{{.ps = 2, .workers = 2, .seed = 3}};
  std::optional<ClusterCoordinator> coordinator;
  std::optional<Counters> counters;
  Variable late;

  Successor() {
    begin();
    make_late();
    touch_late(4);
    const std::string checkpoint = coordinator->save({.folder = "/checkpoints"});
    end();
    cluster.start_chief();
    begin();
    coordinator->restore(checkpoint);
  }
  void begin() {
    coordinator.emplace(cluster.strategy());
    counters.emplace(cluster.strategy());
  }
  void end() {
    late = Variable();
    counters.reset();
    coordinator.reset();
    cluster.kill_chief();
  }
  void make_late() {
    late = cluster.strategy().create_variable(
        {.name = "late", .shape = {64, 1}, .initializer = Initializer::zeros()});
  }
  void touch_late(int times) {
    Function touch = cluster.strategy().function([&] {
      late.assign_add(Array(Tensor::of<float>({64, 1}, std::vector<float>(64, 1))));
    });
    for (int i = 0; i < times; ++i) coordinator->schedule(touch);
    coordinator->join(kPatience);
  }
  void expect_late(float each) const {
    const Tensor value = late.read().eval();
    EXPECT_THAT(std::vector<float>(value.values<float>().begin(), value.values<float>().end()),
                Each(each));
  }
};

TEST(Restore, OfAVariableThatIsMadeLaterBeginsAnewWhenItsPsWasCutOffMeanwhile) {
  Successor job;
  job.cluster.slow_disks(std::chrono::milliseconds(50));
  job.make_late();
  for (const char* ps : {"ps0", "ps1"})
    job.cluster.reactor().schedule(std::chrono::milliseconds(20),
                                   [&job, ps] { job.cluster.network().cut("chief", ps); });
  job.cluster.reactor().schedule(std::chrono::milliseconds(60),
                                 [&job] { job.cluster.network().heal_all(); });
  job.touch_late(2);
  job.expect_late(6);
}

TEST(Restore, OfAVariableThatIsMadeLaterWaitsForACheckpointThatIsBeingWritten) {
  Successor job;
  Function count =
      job.cluster.strategy().function([&job] { job.counters->v.assign_add(Array(1.0f)); });
  job.coordinator->save_automatically({.folder = "/checkpoints", .every_steps = 3});
  for (int i = 0; i < 2; ++i) job.coordinator->schedule(count);
  job.coordinator->join(kPatience);
  job.cluster.slow_disks(std::chrono::milliseconds(50));
  job.coordinator->schedule(count);
  job.coordinator->join(kPatience);
  job.cluster.run_for(std::chrono::milliseconds(70));  // its shards are marked, and write
  job.make_late();
  job.touch_late(2);
  job.expect_late(6);
  EXPECT_EQ(job.coordinator->stats().checkpoints_failed, 0u);
}

TEST(Recovery, ACoordinatorThatDiesWhileAPsIsRestoredHasASuccessor) {
  SimulatedCluster cluster({.ps = 2, .workers = 1, .seed = 3});
  {
    ClusterCoordinator coordinator(cluster.strategy());
    Counters counters(cluster.strategy());
    Function add = cluster.strategy().function([&] { counters.v.assign_add(Array(1.0f)); });
    coordinator.schedule(add);
    coordinator.save({.folder = "/checkpoints"});
    cluster.kill_ps(0);
    cluster.kill_ps(1);
    cluster.start_ps(0);
    cluster.start_ps(1);
    cluster.slow_disks(std::chrono::milliseconds(50));
    cluster.run_for(std::chrono::milliseconds(100));
  }
  cluster.kill_chief();
  cluster.start_chief();

  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  Function add = cluster.strategy().function([&] { counters.v.assign_add(Array(1.0f)); });
  coordinator.schedule(add);
  coordinator.join(kPatience);
  EXPECT_EQ(counters.value_of_v(), 1.0f);
}

}  // namespace
}  // namespace cairn
