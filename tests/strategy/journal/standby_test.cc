// A second coordinator that stands by, and takes over from one that is cut off, with its journal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/engine/standby.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

class StandbyCoordinator : public ::testing::Test {
 protected:
  ClusterSpec cluster_spec() const {
    ClusterSpec spec;
    for (int i = 0; i < 2; ++i) {
      spec.add_task("ps", "sim://ps" + std::to_string(i));
      spec.add_task("worker", "sim://worker" + std::to_string(i));
    }
    return spec;
  }
  // Runs for at most `limit`. Whether it has found the first one gone.
  bool stand_by(Duration limit) {
    bool ended = false;
    rpc::TaskGroup tasks;
    tasks.spawn("standby", wait(&ended));
    const Duration until = cluster_.reactor().now() + limit;
    while (!ended && cluster_.reactor().now() < until) cluster_.run_for(milliseconds(10));
    return ended;
  }
  rpc::Task<void> wait(bool* ended) {
    StandbyOptions options{.cluster = cluster_spec(), .cluster_id = "cairn"};
    options.say = [this](const std::string& text) { said_ += text + "\n"; };
    co_await wait_as_standby(cluster_.reactor(), cluster_.network().host("chief2"), options);
    *ended = true;
  }
  std::unique_ptr<ParameterServerStrategy> second() {
    EngineOptions options;
    options.cluster = cluster_spec();
    options.journal.folder = "/journal";
    options.take_over = true;
    return std::make_unique<ParameterServerStrategy>(start_simulated_engine(
        options,
        {cluster_.reactor(), cluster_.network().host("chief2"), *offload_, cluster_.disk()}));
  }
  void cut_off(const char* host) {
    for (const char* task : {"ps0", "ps1", "worker0", "worker1"})
      cluster_.network().partition_both(host, task);
  }

  SimulatedCluster cluster_{{.ps = 2, .workers = 2, .journal = true}};
  std::unique_ptr<rpc::SimOffload> offload_ =
      std::make_unique<rpc::SimOffload>(cluster_.reactor(), 99, Duration(0));
  std::string said_;
};

TEST_F(StandbyCoordinator, WaitsAsLongAsTheFirstIsHeardOfAndSaysForWhom) {
  EXPECT_FALSE(stand_by(seconds(20)));
  EXPECT_THAT(said_, AllOf(HasSubstr("waiting for session "), HasSubstr("pid "),
                           HasSubstr("/job:ps/task:0")));
  EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 1) << said_;
}

TEST_F(StandbyCoordinator, HasWaitedOnceThePsHaveNotHeardOfTheFirstForASecond) {
  cluster_.run_for(seconds(1));
  const Duration before = cluster_.reactor().now();
  cluster_.kill_chief();
  EXPECT_TRUE(stand_by(seconds(10)));
  const Duration after = cluster_.reactor().now() - before;
  EXPECT_GE(after, milliseconds(800));
  EXPECT_LT(after, milliseconds(1400));
}

TEST_F(StandbyCoordinator, TakesOverFromNobodyIfItIsItselfCutOff) {
  cut_off("chief2");
  EXPECT_FALSE(stand_by(seconds(20)));
  EXPECT_THAT(said_, HasSubstr("half of the ps"));
}

TEST_F(StandbyCoordinator, GoesOnWithTheRunOfOneThatIsCutOffAndEachElementCountsOnce) {
  Counters counters(cluster_.strategy());
  ClusterCoordinator first(cluster_.strategy());
  auto batches = first.create_shared_dataset(numbers(Counters::kRows));
  Function add = cluster_.strategy().function(
      [&](const Iterator& input) { counters.add_one(input.get_next().features["value"]); });
  for (int i = 0; i < 20; ++i) first.schedule(add, {batches});
  first.join(kPatience);
  for (int i = 0; i < 20; ++i) first.schedule(add, {batches});
  cluster_.run_for(microseconds(500));
  cut_off("chief");
  EXPECT_TRUE(stand_by(seconds(10)));
  auto other = second();
  const Counters again(*other);
  ClusterCoordinator next(*other);
  ASSERT_TRUE(next.resumed());
  EXPECT_EQ(next.resumed()->term, 2u);
  auto rest = next.create_shared_dataset(numbers(Counters::kRows));
  Function add_again = other->function(
      [&](const Iterator& input) { again.add_one(input.get_next().features["value"]); });
  cluster_.network().heal_all();
  try {
    for (int i = 0; i < Counters::kRows + 1; ++i) next.schedule(add_again, {rest});
    next.join(kPatience);
    ADD_FAILURE() << "the data has no end";
  } catch (const OutOfRangeError&) {
  }
  EXPECT_THAT(again.value_of_rows(), Each(1.0f));
  EXPECT_EQ(next.stats().global_step, Counters::kRows);
  try {
    first.join(kPatience);
    ADD_FAILURE() << "the first one trains on";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("goes on with the session"), HasSubstr("term 2")));
  }
  EXPECT_THAT(again.value_of_rows(), Each(1.0f));
}

TEST_F(StandbyCoordinator, NotesOfTheProgramAreThereForTheOneThatGoesOn) {
  ClusterCoordinator first(cluster_.strategy());
  first.note("place", "epoch 3");
  first.note("gone", "text");
  first.note("place", std::string("epoch\0 4", 8));
  first.save({.folder = "/c"});  // begins the journal's file anew
  first.note("gone", "");
  cluster_.kill_chief();
  cluster_.start_chief();
  const auto resumed = ClusterCoordinator(cluster_.strategy()).resumed();
  ASSERT_TRUE(resumed);
  EXPECT_THAT(resumed->notes,
              ::testing::ElementsAre(::testing::Pair("place", std::string("epoch\0 4", 8))));
}

}  // namespace
}  // namespace cairn
