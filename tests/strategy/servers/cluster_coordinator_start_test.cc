// The beginning of a session, with tasks that are late; and the checkpoints that it makes by
// itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/async.h>

#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Start, NamesEveryTaskThatIsMissing) {
  SimulatedCluster cluster({.ps = 3, .workers = 2});
  cluster.kill_chief();
  cluster.kill_ps(0);
  cluster.kill_ps(2);
  cluster.kill_worker(1);
  try {
    cluster.start_chief();
    FAIL() << "it started";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/job:ps/task:0 at"), HasSubstr("/job:ps/task:2 at"),
                                    HasSubstr("/job:worker/task:1 at")));
    EXPECT_THAT(error.what(),
                AllOf(Not(HasSubstr("/job:ps/task:1")), Not(HasSubstr("/job:worker/task:0"))));
  }
}

// Both would be one process, which ends each connection for the other one.
TEST(Start, OneAddressForTwoTasksIsRefusedAtOnce) {
  EngineOptions options;
  options.cluster =
      ClusterSpec{{"ps", {"127.0.0.1:4321", "localhost:4321"}}, {"worker", {"127.0.0.1:4322"}}};
  try {
    start_engine_thread(options, rpc::Transport::kAuto);
    FAIL() << "it started";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/job:ps/task:0"), HasSubstr("/job:ps/task:1")));
  }
}

// The shards of those that came first are numbered behind the late one's.
TEST(Start, TasksMayComeInAnyOrder) {
  SimulatedCluster cluster({.ps = 2, .workers = 2, .shards = 2});
  cluster.kill_chief();
  cluster.kill_ps(0);
  auto back = cluster.reactor()
                  .sleep(std::chrono::seconds(3))
                  .then([&] { cluster.start_ps(0); })
                  .eagerlyEvaluate(nullptr);
  cluster.start_chief();

  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
  Function add = cluster.strategy().function(
      [&](Iterator input) { counters.add_one(input.get_next().features["value"]); });
  for (std::int64_t i = 0; i < Counters::kRows; ++i) coordinator.schedule(add, {data});
  coordinator.join(kPatience);
  EXPECT_EQ(counters.value_of_v(), static_cast<float>(Counters::kRows));
  EXPECT_EQ(counters.value_of_w(), static_cast<float>(Counters::kRows));
  EXPECT_THAT(counters.value_of_rows(), Each(1.0f));
}

class AutomaticCheckpoints : public ::testing::Test {
 protected:
  void train(int steps) {
    for (int i = 0; i < steps; ++i) coordinator_.schedule(add_);
    coordinator_.join(kPatience);
    cluster_.run_for(std::chrono::seconds(1));
  }
  SimulatedCluster cluster_{{.ps = 1, .workers = 1}};
  ClusterCoordinator coordinator_{cluster_.strategy()};
  Counters counters_{cluster_.strategy()};
  Function add_ = cluster_.strategy().function([this] { counters_.v.assign_add(Array(1.0f)); });
};

TEST_F(AutomaticCheckpoints, AreMadeAtWhicheverOfStepsAndTimeComesFirst) {
  coordinator_.save_automatically(
      {.folder = "/checkpoints", .every_steps = 10, .every_seconds = 60});
  cluster_.run_for(std::chrono::seconds(40));
  train(10);
  EXPECT_EQ(coordinator_.stats().checkpoints, 1u);  // for its steps, after 40 s
  cluster_.run_for(std::chrono::seconds(40));
  EXPECT_EQ(coordinator_.stats().checkpoints, 1u);  // the one of a minute was put off
  cluster_.run_for(std::chrono::seconds(30));
  EXPECT_EQ(coordinator_.stats().checkpoints, 2u);  // a minute after the first
}

TEST_F(AutomaticCheckpoints, ThatFailSayWhy) {
  coordinator_.save_automatically({.folder = "/checkpoints", .every_steps = 10});
  cluster_.disk().set_capacity(0);
  train(10);
  EXPECT_EQ(coordinator_.stats().checkpoints_failed, 1u);
  EXPECT_THAT(coordinator_.stats().checkpoint_error, HasSubstr("/checkpoints"));
}

}  // namespace
}  // namespace cairn
