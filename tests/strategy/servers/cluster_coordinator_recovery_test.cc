// Promises to a closure when processes die: applied once, elements taken once, one consistent
// cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Each closure reads one element of the data and adds one to that row, to v and to w.
Function count_function(Strategy& strategy, const Counters& counters) {
  return strategy.function(
      [&counters](Iterator input) { counters.add_one(input.get_next().features["value"]); });
}

// A cluster on which each closure takes an element of `data` and adds one to that row, v and w.
struct CountingJob {
  SimulatedCluster cluster;
  ClusterCoordinator coordinator{cluster.strategy()};
  Counters counters{cluster.strategy()};
  PerWorkerDatasetHandle data;
  Function add = count_function(cluster.strategy(), counters);

  explicit CountingJob(const SimulatedClusterOptions& options,
                       const Dataset& elements = numbers(Counters::kRows))
      : cluster(options), data(coordinator.create_shared_dataset(elements)) {}

  void schedule(std::int64_t closures) {
    for (std::int64_t i = 0; i < closures; ++i) coordinator.schedule(add, {data});
  }
  void count(std::int64_t closures) {
    schedule(closures);
    coordinator.join(kPatience);
  }
  void expect_each_row_counted_once() const {
    EXPECT_EQ(counters.value_of_v(), static_cast<float>(Counters::kRows));
    EXPECT_EQ(counters.value_of_w(), static_cast<float>(Counters::kRows));
    EXPECT_THAT(counters.value_of_rows(), Each(1.0f));
  }
  // v, w and the rows have counted the same number of closures, which is returned.
  float expect_one_count() const {
    const float v = counters.value_of_v();
    const auto rows = counters.value_of_rows();
    EXPECT_EQ(counters.value_of_w(), v);
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), 0.0f), v);
    return v;
  }
};

class ExactlyOnce : public ::testing::TestWithParam<int> {
 protected:
  static SimulatedClusterOptions options(int workers) {
    return {.ps = 2, .workers = workers, .seed = static_cast<std::uint64_t>(GetParam())};
  }
};

TEST_P(ExactlyOnce, ClosuresOfAKilledWorkerAreAppliedOnceAndNoElementIsLost) {
  CountingJob job(options(3));
  job.schedule(Counters::kRows);

  job.cluster.run_for(std::chrono::milliseconds(3 + GetParam()));
  job.cluster.kill_worker(GetParam() % 3);
  job.cluster.run_for(std::chrono::milliseconds(20));
  job.cluster.start_worker(GetParam() % 3);
  job.coordinator.join(kPatience);

  job.expect_each_row_counted_once();
}

TEST_P(ExactlyOnce, APartitionedWorkerThatComesBackChangesNothingMore) {
  CountingJob job(options(2));
  job.schedule(Counters::kRows);

  job.cluster.run_for(std::chrono::milliseconds(2 + GetParam()));
  job.cluster.network().partition_both("chief", "worker0");  // it still reaches the ps
  job.cluster.run_for(std::chrono::seconds(3));
  job.cluster.network().heal_all();
  job.coordinator.join(kPatience);
  job.cluster.run_for(std::chrono::seconds(3));

  job.expect_each_row_counted_once();
}

TEST_P(ExactlyOnce, AnAnswerThatIsLostOnItsWayHasAllItsClosuresRunAgainAndAppliedOnce) {
  CountingJob job(options(1));
  job.schedule(Counters::kRows);

  job.cluster.run_for(std::chrono::milliseconds(5 + GetParam()));
  const std::size_t under_way = job.coordinator.counts().inflight;
  job.cluster.network().drop_next("worker0", "chief");
  job.coordinator.join(kPatience);

  EXPECT_GT(under_way, 1u);
  EXPECT_GE(job.coordinator.counts().retried, 1u);
  job.expect_each_row_counted_once();
}

TEST_P(ExactlyOnce, APsThatWasOnlyCutOffKeepsItsState) {
  CountingJob job(options(2));
  job.schedule(Counters::kRows);

  job.cluster.run_for(std::chrono::milliseconds(2 + GetParam()));
  job.cluster.network().cut("worker0", "ps0");
  job.cluster.network().cut("chief", "ps1");
  job.cluster.run_for(std::chrono::milliseconds(50));
  job.cluster.network().heal_all();
  job.coordinator.join(kPatience);

  job.expect_each_row_counted_once();
  EXPECT_EQ(job.coordinator.stats().lost_updates, 0u);
}

TEST_P(ExactlyOnce, AKilledPsLosesJustTheUpdatesThatAreReported) {
  CountingJob job(options(2));
  job.count(40);
  job.coordinator.save({.folder = "/checkpoints"});
  job.schedule(60);

  job.cluster.run_for(std::chrono::milliseconds(1 + GetParam()));
  job.cluster.kill_ps(0);
  job.cluster.run_for(std::chrono::milliseconds(30));
  job.cluster.start_ps(0);
  job.coordinator.join(kPatience);

  // v and w lie on different ps: one of them lost nothing, the other what the report says.
  float lost = static_cast<float>(job.coordinator.stats().lost_updates);
  EXPECT_EQ(std::max(job.counters.value_of_v(), job.counters.value_of_w()), 100.0f);
  EXPECT_EQ(std::min(job.counters.value_of_v(), job.counters.value_of_w()), 100.0f - lost);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExactlyOnce, ::testing::Range(1, 13));

TEST(Checkpoint, IsOneCutWhileTrainingGoesOn) {
  CountingJob job({.ps = 3, .workers = 2, .seed = 5});
  job.schedule(80);
  while (job.coordinator.stats().updates < 20) job.cluster.run_for(std::chrono::microseconds(100));
  std::string checkpoint = job.coordinator.save({.folder = "/checkpoints"});
  job.coordinator.join(kPatience);

  job.coordinator.restore(checkpoint);

  const float v = job.expect_one_count();
  EXPECT_GT(v, 0.0f);
  EXPECT_LT(v, 80.0f);
}

// It has not been asked to hold its pushes, and some shards have marked when it is there.
TEST(Checkpoint, IsOneCutAlthoughAWorkerComesBackWhileItIsMade) {
  CountingJob job({.ps = 2, .workers = 2, .seed = 5},
                  Dataset::range(Counters::kRows).repeat().batch(1));
  job.count(10);
  job.cluster.kill_worker(1);
  job.cluster.run_for(std::chrono::milliseconds(50));
  job.schedule(9 * Counters::kRows);
  job.cluster.run_for(std::chrono::milliseconds(5));

  // its pushes are under way, so that holding them takes long
  job.cluster.network().partition("worker0", "ps0");
  auto later = [&](int milliseconds, std::function<void()> work) {
    job.cluster.reactor().schedule(std::chrono::milliseconds(milliseconds), std::move(work));
  };
  later(100, [&] { job.cluster.start_worker(1); });
  // it marks later than the other
  later(399, [&] { job.cluster.network().partition("chief", "ps1"); });
  later(400, [&] { job.cluster.network().heal("worker0", "ps0"); });
  later(440, [&] { job.cluster.network().heal("chief", "ps1"); });
  const std::string checkpoint = job.coordinator.save({.folder = "/checkpoints"});
  job.coordinator.join(kPatience);
  // worker 1 alone: nothing else was taken for dead
  ASSERT_EQ(job.coordinator.stats().losses.size(), 1u);

  job.coordinator.restore(checkpoint);

  const float v = job.expect_one_count();
  EXPECT_GE(v, 10.0f);
  EXPECT_LT(v, 910.0f);
  EXPECT_EQ(static_cast<float>(job.coordinator.stats().global_step), v);
}

// A job that goes back to a checkpoint of its own and then on from there.
struct GoneBack : CountingJob {
  GoneBack() : CountingJob({.ps = 2, .workers = 2, .seed = 3}) {
    count(20);
    std::string checkpoint = coordinator.save({.folder = "/checkpoints"});
    count(10);
    coordinator.restore(checkpoint);
    count(5);
  }
  void expect_counted(float closures) const { EXPECT_EQ(expect_one_count(), closures); }
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
