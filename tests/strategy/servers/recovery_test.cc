// What a closure may count on when processes die: applied once, elements taken once, one consistent
// cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "core/graph/ops.h"
#include "tests/strategy/servers/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Each closure reads one element of the data and adds one to that row, to v and to w.
Function count_function(Strategy& strategy, const Counters& counters) {
  return strategy.function(
      [&counters](Iterator input) { counters.add_one(input.get_next().features["value"]); });
}

class ExactlyOnce : public ::testing::TestWithParam<int> {};

TEST_P(ExactlyOnce, ClosuresOfAKilledWorkerAreAppliedOnceAndNoElementIsLost) {
  SimulatedCluster cluster({.ps = 2, .workers = 3, .seed = static_cast<std::uint64_t>(GetParam())});
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
  Function add = count_function(cluster.strategy(), counters);
  for (std::int64_t i = 0; i < Counters::kRows; ++i) coordinator.schedule(add, {data});

  cluster.run_for(std::chrono::milliseconds(3 + GetParam()));
  cluster.kill_worker(GetParam() % 3);
  cluster.run_for(std::chrono::milliseconds(20));
  cluster.start_worker(GetParam() % 3);
  coordinator.join(kPatience);

  EXPECT_EQ(counters.value_of_v(), static_cast<float>(Counters::kRows));
  EXPECT_EQ(counters.value_of_w(), static_cast<float>(Counters::kRows));
  EXPECT_THAT(counters.value_of_rows(), Each(1.0f));
}

TEST_P(ExactlyOnce, APartitionedWorkerThatComesBackChangesNothingMore) {
  SimulatedCluster cluster({.ps = 2, .workers = 2, .seed = static_cast<std::uint64_t>(GetParam())});
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
  Function add = count_function(cluster.strategy(), counters);
  for (std::int64_t i = 0; i < Counters::kRows; ++i) coordinator.schedule(add, {data});

  cluster.run_for(std::chrono::milliseconds(2 + GetParam()));
  cluster.network().partition_both("chief", "worker0");  // it still reaches the ps
  cluster.run_for(std::chrono::seconds(3));
  cluster.network().heal_all();
  coordinator.join(kPatience);
  cluster.run_for(std::chrono::seconds(3));

  EXPECT_EQ(counters.value_of_v(), static_cast<float>(Counters::kRows));
  EXPECT_THAT(counters.value_of_rows(), Each(1.0f));
}

TEST_P(ExactlyOnce, AnAnswerThatIsLostOnItsWayHasAllItsClosuresRunAgainAndAppliedOnce) {
  SimulatedCluster cluster({.ps = 2, .workers = 1, .seed = static_cast<std::uint64_t>(GetParam())});
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
  Function add = count_function(cluster.strategy(), counters);
  for (std::int64_t i = 0; i < Counters::kRows; ++i) coordinator.schedule(add, {data});

  cluster.run_for(std::chrono::milliseconds(5 + GetParam()));
  const std::size_t under_way = coordinator.counts().inflight;
  cluster.network().drop_next("worker0", "chief");
  coordinator.join(kPatience);

  EXPECT_GT(under_way, 1u);
  EXPECT_GE(coordinator.counts().retried, 1u);
  EXPECT_EQ(counters.value_of_v(), static_cast<float>(Counters::kRows));
  EXPECT_EQ(counters.value_of_w(), static_cast<float>(Counters::kRows));
  EXPECT_THAT(counters.value_of_rows(), Each(1.0f));
}

TEST_P(ExactlyOnce, APsThatWasOnlyCutOffKeepsItsState) {
  SimulatedCluster cluster({.ps = 2, .workers = 2, .seed = static_cast<std::uint64_t>(GetParam())});
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
  Function add = count_function(cluster.strategy(), counters);
  for (std::int64_t i = 0; i < Counters::kRows; ++i) coordinator.schedule(add, {data});

  cluster.run_for(std::chrono::milliseconds(2 + GetParam()));
  cluster.network().cut("worker0", "ps0");
  cluster.network().cut("chief", "ps1");
  cluster.run_for(std::chrono::milliseconds(50));
  cluster.network().heal_all();
  coordinator.join(kPatience);

  EXPECT_EQ(counters.value_of_v(), static_cast<float>(Counters::kRows));
  EXPECT_EQ(counters.value_of_w(), static_cast<float>(Counters::kRows));
  EXPECT_THAT(counters.value_of_rows(), Each(1.0f));
  EXPECT_EQ(coordinator.stats().lost_updates, 0u);
}

TEST_P(ExactlyOnce, AKilledPsLosesJustTheUpdatesThatAreReported) {
  SimulatedCluster cluster({.ps = 2, .workers = 2, .seed = static_cast<std::uint64_t>(GetParam())});
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
  Function add = count_function(cluster.strategy(), counters);
  for (int i = 0; i < 40; ++i) coordinator.schedule(add, {data});
  coordinator.join(kPatience);
  coordinator.save({.folder = "/checkpoints"});
  for (int i = 0; i < 60; ++i) coordinator.schedule(add, {data});

  cluster.run_for(std::chrono::milliseconds(1 + GetParam()));
  cluster.kill_ps(0);
  cluster.run_for(std::chrono::milliseconds(30));
  cluster.start_ps(0);
  coordinator.join(kPatience);

  // v and w lie on different ps: one of them lost nothing, the other what the report says.
  float lost = static_cast<float>(coordinator.stats().lost_updates);
  EXPECT_EQ(std::max(counters.value_of_v(), counters.value_of_w()), 100.0f);
  EXPECT_EQ(std::min(counters.value_of_v(), counters.value_of_w()), 100.0f - lost);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExactlyOnce, ::testing::Range(1, 13));

TEST(Checkpoint, IsOneCutWhileTrainingGoesOn) {
  SimulatedCluster cluster({.ps = 3, .workers = 2, .seed = 5});
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
  Function add = count_function(cluster.strategy(), counters);
  for (int i = 0; i < 80; ++i) coordinator.schedule(add, {data});
  while (coordinator.stats().updates < 20) cluster.run_for(std::chrono::microseconds(100));
  std::string checkpoint = coordinator.save({.folder = "/checkpoints"});
  coordinator.join(kPatience);

  coordinator.restore(checkpoint);

  float v = counters.value_of_v();
  auto rows = counters.value_of_rows();
  EXPECT_GT(v, 0.0f);
  EXPECT_LT(v, 80.0f);
  EXPECT_EQ(counters.value_of_w(), v);
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), 0.0f), v);
}

// It has not been asked to hold its pushes, and some shards have marked when it is there.
TEST(Checkpoint, IsOneCutAlthoughAWorkerComesBackWhileItIsMade) {
  SimulatedCluster cluster({.ps = 2, .workers = 2, .seed = 5});
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  auto data = coordinator.create_shared_dataset(Dataset::range(Counters::kRows).repeat().batch(1));
  Function add = count_function(cluster.strategy(), counters);
  for (int i = 0; i < 10; ++i) coordinator.schedule(add, {data});
  coordinator.join(kPatience);
  cluster.kill_worker(1);
  cluster.run_for(std::chrono::milliseconds(50));
  for (std::int64_t i = 0; i < 9 * Counters::kRows; ++i) coordinator.schedule(add, {data});
  cluster.run_for(std::chrono::milliseconds(5));

  // its pushes are under way, so that holding them takes long
  cluster.network().partition("worker0", "ps0");
  auto later = [&](int milliseconds, std::function<void()> work) {
    cluster.reactor().schedule(std::chrono::milliseconds(milliseconds), std::move(work));
  };
  later(100, [&] { cluster.start_worker(1); });
  // it marks later than the other
  later(399, [&] { cluster.network().partition("chief", "ps1"); });
  later(400, [&] { cluster.network().heal("worker0", "ps0"); });
  later(440, [&] { cluster.network().heal("chief", "ps1"); });
  const std::string checkpoint = coordinator.save({.folder = "/checkpoints"});
  coordinator.join(kPatience);
  // worker 1 alone: nothing else was taken for dead
  ASSERT_EQ(coordinator.stats().losses.size(), 1u);

  coordinator.restore(checkpoint);

  const float v = counters.value_of_v();
  const auto rows = counters.value_of_rows();
  EXPECT_GE(v, 10.0f);
  EXPECT_LT(v, 910.0f);
  EXPECT_EQ(counters.value_of_w(), v);
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), 0.0f), v);
  EXPECT_EQ(static_cast<float>(coordinator.stats().global_step), v);
}

// A job that goes back to a checkpoint of its own and then on from there.
struct GoneBack {
  SimulatedCluster cluster{{.ps = 2, .workers = 2, .seed = 3}};
  ClusterCoordinator coordinator{cluster.strategy()};
  Counters counters{cluster.strategy()};
  PerWorkerDatasetHandle data = coordinator.create_shared_dataset(numbers(Counters::kRows));
  Function add = count_function(cluster.strategy(), counters);

  GoneBack() {
    count(20);
    std::string checkpoint = coordinator.save({.folder = "/checkpoints"});
    count(10);
    coordinator.restore(checkpoint);
    count(5);
  }
  void count(int closures) {
    for (int i = 0; i < closures; ++i) coordinator.schedule(add, {data});
    coordinator.join(kPatience);
  }
  void expect_counted(float closures) const {
    EXPECT_EQ(counters.value_of_v(), closures);
    EXPECT_EQ(counters.value_of_w(), closures);
    auto rows = counters.value_of_rows();
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), 0.0f), closures);
  }
};

TEST(Restore, AVariableThatIsMadeLaterLeavesTheOthersAsTheyAre) {
  GoneBack job;
  Variable later = job.cluster.strategy().create_variable(
      {.name = "later", .shape = {3, 1}, .initializer = Initializer::zeros()});
  Function touch = job.cluster.strategy().function([&] {
    later.assign_add(Array(Tensor::of<float>({3, 1}, std::vector<float>{1, 2, 3})));
  });
  job.coordinator.schedule(touch);
  job.coordinator.join(kPatience);
  const Tensor value = later.read().eval();
  EXPECT_THAT(std::vector<float>(value.values<float>().begin(), value.values<float>().end()),
              ::testing::ElementsAre(1, 2, 3));
  job.expect_counted(25);
}

TEST(Restore, SlotsThatAreAddedLaterLeaveTheRowsAsTheyAre) {
  GoneBack job;
  job.cluster.strategy().add_slots(job.counters.v, {RuleKind::kAdagrad, {0.1f, 1e-7f}});
  job.count(1);
  job.expect_counted(26);
}

TEST(Restore, ALostPsIsRebuiltFromWhatWasSavedSince) {
  GoneBack job;
  job.coordinator.save({.folder = "/checkpoints"});
  for (int ps : {0, 1}) {
    job.cluster.kill_ps(ps);
    job.cluster.run_for(std::chrono::milliseconds(30));
    job.cluster.start_ps(ps);
    job.cluster.run_for(std::chrono::seconds(3));
  }
  job.expect_counted(25);
}

TEST(Recovery, ALostPsIsAnErrorThatNamesItWhenRecoveryIsOff) {
  SimulatedClusterOptions options{.ps = 2, .workers = 1};
  options.strategy.engine.recovery = false;
  SimulatedCluster cluster(options);
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  Function add = cluster.strategy().function([&] {
    counters.add_one(Array(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{0})));
  });
  coordinator.schedule(add);
  coordinator.join(kPatience);

  cluster.kill_ps(1);
  for (int i = 0; i < 5; ++i) coordinator.schedule(add);

  try {
    coordinator.join(std::chrono::seconds(1));
    FAIL() << "the loss of a ps was not reported";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/job:ps/task:1"));
  }
}

TEST(Recovery, APsThatStaysAwayIsAnErrorAfterTheTimeAllowed) {
  SimulatedClusterOptions options{.ps = 2, .workers = 1};
  options.strategy.engine.ps_wait = std::chrono::seconds(20);
  SimulatedCluster cluster(options);
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  Function add = cluster.strategy().function([&] { counters.v.assign_add(Array(1.0f)); });
  coordinator.schedule(add);
  coordinator.join(kPatience);

  cluster.kill_ps(0);
  cluster.run_for(std::chrono::seconds(1));
  coordinator.schedule(add);

  // still waiting for it
  EXPECT_THROW(coordinator.join(std::chrono::seconds(10)), DeadlineExceededError);
  EXPECT_THROW(coordinator.join(std::chrono::seconds(20)), UnavailableError);
}

TEST(Recovery, NoWorkerLeftIsReportedByNameAfterTheTimeAllowed) {
  SimulatedClusterOptions options{.ps = 1, .workers = 2};
  options.strategy.engine.worker_wait = std::chrono::seconds(5);
  SimulatedCluster cluster(options);
  ClusterCoordinator coordinator(cluster.strategy());
  Function nothing = cluster.strategy().function([] { return Array(1.0f); });
  cluster.kill_worker(0);
  cluster.kill_worker(1);
  coordinator.schedule(nothing);

  try {
    coordinator.join(std::chrono::seconds(30));
    FAIL() << "the loss of all workers was not reported";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/job:worker/task:0"));
    EXPECT_THAT(error.what(), HasSubstr("/job:worker/task:1"));
  }
}

TEST(Recovery, AWorkerThatReturnsGoesOnWhereItsDataStood) {
  SimulatedCluster cluster({.ps = 1, .workers = 1, .seed = 3});
  ClusterCoordinator coordinator(cluster.strategy());
  auto data =
      coordinator.create_per_worker_dataset([](const InputContext&) { return numbers(20); });
  Function next = cluster.strategy().function(
      [](Iterator input) { return input.get_next().features["value"]; });
  std::vector<std::int64_t> seen;
  for (int i = 0; i < 7; ++i)
    seen.push_back(coordinator.schedule(next, {data}).get(kPatience).item<std::int64_t>());

  cluster.kill_worker(0);
  cluster.run_for(std::chrono::milliseconds(10));
  cluster.start_worker(0);
  for (int i = 0; i < 7; ++i)
    seen.push_back(coordinator.schedule(next, {data}).get(kPatience).item<std::int64_t>());

  EXPECT_THAT(seen, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13));
}

TEST(Fetch, GivesTheValueAfterTheWorkerThatMadeItDied) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  ClusterCoordinator coordinator(cluster.strategy());
  Function seven = cluster.strategy().function([] { return Array(7.0f); });
  RemoteValue value = coordinator.schedule(seven);
  coordinator.join(kPatience);

  cluster.kill_worker(0);
  cluster.run_for(std::chrono::seconds(2));

  EXPECT_EQ(value.get(kPatience).item<float>(), 7.0f);
}

}  // namespace
}  // namespace cairn
