// Each row has copies on two ps: what dies takes no update with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Each;

// Closures that each take an element and add one to that row, to v and to w.
struct ReplicatedJob {
  SimulatedCluster cluster;
  ClusterCoordinator coordinator{cluster.strategy()};
  Counters counters{cluster.strategy()};
  PerWorkerDatasetHandle data;
  Function add;

  explicit ReplicatedJob(const SimulatedClusterOptions& options)
      : cluster(options),
        data(coordinator.create_shared_dataset(numbers(Counters::kRows))),
        add(cluster.strategy().function([this, options](Iterator input) {
          const Array ids = input.get_next().features["value"];
          if (HybridConsistency::is(options.strategy.consistency))
            counters.subtract_gradients(ids);
          else
            counters.add_one(ids);
        })) {}

  void schedule(std::int64_t closures) {
    for (std::int64_t i = 0; i < closures; ++i) coordinator.schedule(add, {data});
  }
  void join() { coordinator.join(kPatience); }
  Json status() const {
    return Json::parse(
        const_cast<SimulatedCluster&>(cluster).strategy().host().engine().status_json());
  }
  bool in_sync() const {
    const Json now = status();
    for (const Json& ps : now["ps"])
      if (!ps["ready"] || ps["in_sync"] != ps["backups"]) return false;
    return true;
  }
  void reach_sync() {
    cluster.run_for(milliseconds(300));  // the status is as of 200 ms ago
    for (int i = 0; i < 200 && !in_sync(); ++i) cluster.run_for(milliseconds(100));
    ASSERT_TRUE(in_sync()) << status().dump(2);
  }
  void expect_each_element_once() const {
    EXPECT_EQ(counters.value_of_v(), static_cast<float>(Counters::kRows));
    EXPECT_EQ(counters.value_of_w(), static_cast<float>(Counters::kRows));
    EXPECT_THAT(counters.value_of_rows(), Each(1.0f));
    EXPECT_EQ(status()["lost_updates"], 0);
  }
};

class Replicas : public ::testing::TestWithParam<int> {
 protected:
  static SimulatedClusterOptions options(int ps = 3) {
    SimulatedClusterOptions options{
        .ps = ps, .workers = 2, .shards = 2, .seed = static_cast<std::uint64_t>(GetParam())};
    options.strategy.engine.recovery.replicas = 2;
    return options;
  }
  // While closures are under way, at another moment for each seed.
  static void run_some(ReplicatedJob& job) {
    job.cluster.run_for(milliseconds(1 + GetParam() % 7));
  }
  static int one(int of) { return GetParam() % of; }
};

TEST_P(Replicas, WhatAPsThatIsKilledHadAnsweredIsNotLost) {
  ReplicatedJob job(options());
  job.schedule(40);
  job.join();
  job.reach_sync();
  job.schedule(60);
  run_some(job);
  job.cluster.kill_ps(one(3));
  job.join();
  job.expect_each_element_once();
}

TEST_P(Replicas, APsThatComesBackTakesOverInItsTurn) {
  ReplicatedJob job(options(2));
  job.schedule(20);
  job.join();
  for (int round = 0; round < 4; ++round) {
    const int ps = (one(2) + round) % 2;
    job.reach_sync();
    job.schedule(20);
    run_some(job);
    job.cluster.kill_ps(ps);
    job.cluster.run_for(milliseconds(5));
    job.cluster.start_ps(ps);
    job.join();
  }
  job.expect_each_element_once();
}

TEST_P(Replicas, APsThatOnlyStandsStillIsTakenOverFromSoon) {
  ReplicatedJob job(options());
  job.schedule(40);
  job.join();
  job.reach_sync();
  job.schedule(60);
  run_some(job);
  const std::string ps = "ps" + std::to_string(one(3));
  for (const char* other : {"chief", "worker0", "worker1", "ps0", "ps1", "ps2"})
    if (other != ps) job.cluster.network().partition_both(other, ps);
  const auto before = job.cluster.reactor().now();
  job.join();
  EXPECT_LT(job.cluster.reactor().now() - before, seconds(3));
  job.cluster.network().heal_all();
  job.reach_sync();
  job.expect_each_element_once();
}

// A round that one ps has applied is over. The backup of the one that was killed applies it too,
// with the share that the workers brought before.
TEST_P(Replicas, NoRoundOfHybridStrategyIsLostOnTheShardsOfAPsThatIsKilled) {
  SimulatedClusterOptions hybrid = options();
  hybrid.strategy.consistency = HybridConsistency::make();
  hybrid.strategy.engine.variables.check_replicas = true;
  ReplicatedJob job(hybrid);
  job.schedule(20);
  job.join();
  for (int round = 0; round < 4; ++round) {
    const int ps = (one(3) + round) % 3;
    job.reach_sync();
    job.schedule(20);
    job.cluster.run_for(microseconds(2000 + 700 * GetParam() + 300 * round));
    job.cluster.kill_ps(ps);
    job.cluster.run_for(milliseconds(5));
    job.cluster.start_ps(ps);
    job.join();
  }
  job.expect_each_element_once();
}

TEST(ReplicasRefused, MoreThanThereArePs) {
  SimulatedClusterOptions options{.ps = 2};
  options.strategy.engine.recovery.replicas = 3;
  EXPECT_THROW(SimulatedCluster{options}, InvalidArgumentError);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Replicas, ::testing::Range(1, 9));

}  // namespace
}  // namespace cairn
