// A coordinator with a journal dies while steps are taken in rounds, also as one shard has applied
// a round and the other one has not. The next coordinator has the round applied on both, with the
// same members.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "testing/simulated_cluster.h"

namespace cairn {
namespace {
using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// The rounds that shards apply, each by its members in the order of the sum.
struct AppliedRounds final : ps::PushObserver {
  void fenced(LaneIncarnation, std::span<const LaneIncarnation>) override {}
  void pushed(const StepContext& step, bool, std::uint64_t) override {
    ++pushes;
    newest_step = std::max(newest_step, step.global_step);
  }
  void applied_round(const ps::RoundRequest& round, bool applied) override {
    if (!applied) return;
    std::vector<std::uint64_t> members;
    for (const ps::RoundMember& member : round.members) members.push_back(member.closure);
    ++times[members];
    halfway = !halfway;
  }
  std::map<std::vector<std::uint64_t>, int> times;
  std::uint64_t pushes = 0;  // shares, and rows that are applied at once
  std::int64_t newest_step = -1;
  bool halfway = false;  // of the two shards one has applied a round that the other one has not
};

// A program, and all that it makes each time that it starts. Each closure takes one from a gradient
// that adds one: to v, to w, and to the row of its element.
struct Program {
  explicit Program(SimulatedCluster& cluster)
      : counters(cluster.strategy()), coordinator(cluster.strategy()) {
    batches = coordinator.create_shared_dataset(numbers(Counters::kRows));
    add = cluster.strategy().function([this](const Iterator& input) {
      const Array ids = input.get_next().features["value"];
      const UpdateRule sgd{.kind = RuleKind::kSgd};
      for (const Variable& each : {counters.v, counters.w})
        each.update(sgd, Array(-1.0f), Array(1.0f));
      const Array minus(Tensor::of<float>({1, 1}, std::vector<float>{-1.0f}));
      counters.rows.update(sgd, IndexedSlices{ids, minus, counters.rows.shape()}, Array(1.0f));
    });
  }
  void schedule(int closures) {
    for (int i = 0; i < closures; ++i) coordinator.schedule(add, {batches});
  }
  // Closures, and waits for them.
  void run(int closures) {
    schedule(closures);
    coordinator.join(kPatience);
  }
  std::vector<float> sums() const {
    std::vector<float> both{counters.value_of_v(), counters.value_of_w()};
    std::ranges::sort(both);
    return both;
  }
  // The elements that no closure has counted yet.
  void run_what_is_left() {
    run(static_cast<int>(Counters::kRows) - static_cast<int>(sums().back()));
  }
  std::int64_t step() { return coordinator.stats().global_step; }
  std::uint64_t lost() { return coordinator.stats().lost_updates; }

  Counters counters;
  ClusterCoordinator coordinator;
  PerWorkerDatasetHandle batches;
  Function add;
};

struct Kind {
  const char* name;
  Consistency consistency;
  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

class JournaledRounds : public ::testing::TestWithParam<Kind> {
 protected:
  static SimulatedClusterOptions options(std::uint64_t seed, AppliedRounds* rounds = nullptr) {
    SimulatedClusterOptions made{.ps = 2,
                                 .workers = 3,
                                 .seed = seed,
                                 .observer = rounds,
                                 .disk_delay_max = microseconds(300),
                                 .journal = true};
    made.strategy.consistency = GetParam().consistency;
    return made;
  }
  static const ResumedRun& resumed(SimulatedCluster& cluster) {
    return cluster.strategy().host().engine().resumed().value();
  }
  // False: no round was begun to be applied for a while.
  static bool run_until_halfway(SimulatedCluster& cluster, AppliedRounds& rounds, int nth) {
    rounds.halfway = false;
    for (int i = 0; i < 2000; ++i) {
      const bool before = rounds.halfway;
      cluster.run_for(microseconds(10));
      if (rounds.halfway && !before && nth-- == 0) return true;
    }
    return false;
  }
};

TEST_P(JournaledRounds, EachElementCountsOnceWhereverTheCoordinatorDies) {
  std::size_t open = 0, halfway = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    AppliedRounds rounds;
    SimulatedCluster cluster(options(seed, &rounds));
    for (std::uint64_t life = 0; life < 6; ++life) {
      Program program(cluster);
      program.schedule(14);
      const std::uint64_t drawn = random_key(seed, life);
      if (life % 2 == 0)
        cluster.run_for(microseconds(drawn % 9000));
      else
        halfway += run_until_halfway(cluster, rounds, static_cast<int>(drawn % 3)) ? 1 : 0;
      cluster.kill_chief();
      cluster.start_chief();
      open += resumed(cluster).open;
    }
    Program program(cluster);
    program.run_what_is_left();
    EXPECT_THAT(program.counters.value_of_rows(), Each(1.0f));
    EXPECT_THAT(program.sums(), Each(100.0f));
    EXPECT_EQ(program.lost(), 0u);
    EXPECT_EQ(program.step(), static_cast<std::int64_t>(rounds.times.size()));
    EXPECT_EQ(program.step(), rounds.newest_step + 1);  // no step is left out
    for (const auto& [members, times] : rounds.times)
      EXPECT_EQ(times, 2) << "a round that begins with closure " << members.front();
  }
  EXPECT_GT(open, 200u);
  EXPECT_GT(halfway, 60u) << "hardly any death came as a round was applied by half";
}

TEST_P(JournaledRounds, APsThatDiesWithTheCoordinatorLosesWhatIsCounted) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    AppliedRounds rounds;
    SimulatedCluster cluster(options(seed, &rounds));
    {
      Program program(cluster);
      program.run(9);
      program.coordinator.save({.folder = "/c"});
      program.schedule(30);
      ASSERT_TRUE(run_until_halfway(cluster, rounds, static_cast<int>(seed % 4)));
    }
    cluster.kill_chief();
    const int ps = static_cast<int>(seed / 4 % 2);
    cluster.kill_ps(ps);
    cluster.start_ps(ps);
    cluster.start_chief();
    Program program(cluster);
    program.run_what_is_left();
    EXPECT_EQ(program.sums().back(), 100.0f);
    EXPECT_EQ(program.sums().front() + static_cast<float>(program.lost()), 100.0f);
  }
}

// It refuses what was sent before it came back, and knows that the round was sent later.
TEST_P(JournaledRounds, APsThatWasRebuiltEarlierLosesNothingMore) {
  int halfway = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    AppliedRounds rounds;
    SimulatedCluster cluster(options(seed, &rounds));
    std::uint64_t lost = 0;
    {
      Program program(cluster);
      program.run(9);
      cluster.kill_ps(static_cast<int>(seed % 2));
      cluster.start_ps(static_cast<int>(seed % 2));
      program.run(9);
      lost = program.lost();
      EXPECT_GE(lost, 9u);
      program.schedule(18);
      halfway += run_until_halfway(cluster, rounds, static_cast<int>(seed % 3)) ? 1 : 0;
    }
    cluster.kill_chief();
    cluster.start_chief();
    Program program(cluster);
    program.run_what_is_left();
    EXPECT_EQ(program.lost(), lost);
    EXPECT_EQ(program.sums(), (std::vector<float>{100 - static_cast<float>(lost), 100}));
  }
  EXPECT_GT(halfway, 8);
}

rpc::Task<void> fill_disk_later(SimulatedCluster* cluster, Duration after) {
  co_await cluster->reactor().sleep(after);
  cluster->disk().set_capacity(cluster->disk().bytes_used());
}

// It has done something of what is open, and can record nothing of it any more.
TEST_P(JournaledRounds, ASuccessorThatGoesOnForAMomentOnlyLeavesTheRestToTheNext) {
  int halfway = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    AppliedRounds rounds;
    SimulatedCluster cluster(options(seed, &rounds));
    {
      Program program(cluster);
      program.schedule(18);
      halfway += run_until_halfway(cluster, rounds, static_cast<int>(seed % 3)) ? 1 : 0;
    }
    cluster.kill_chief();
    {
      rpc::TaskGroup later([](const std::string&, const ErrorParts&) {});
      later.spawn("fill the disk", fill_disk_later(&cluster, microseconds(seed * 300)));
      try {
        cluster.start_chief();
      } catch (const ResourceExhaustedError&) {
      }
    }
    cluster.kill_chief();
    cluster.disk().set_capacity(std::uint64_t{1} << 40);
    cluster.start_chief();
    Program program(cluster);
    program.run_what_is_left();
    EXPECT_THAT(program.counters.value_of_rows(), Each(1.0f));
    EXPECT_THAT(program.sums(), Each(100.0f));
    EXPECT_EQ(program.lost(), 0u);
    EXPECT_EQ(program.step(), static_cast<std::int64_t>(rounds.times.size()));
    for (const auto& [members, times] : rounds.times)
      EXPECT_EQ(times, 2) << "a round that begins with closure " << members.front();
  }
  EXPECT_GT(halfway, 30);
}

// A checkpoint begins the journal's file anew.
TEST_P(JournaledRounds, ACheckpointThatIsMadeMeanwhileKeepsWhatIsOpen) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    AppliedRounds rounds;
    SimulatedCluster cluster(options(seed, &rounds));
    for (int life = 0; life < 4; ++life) {
      {
        Program program(cluster);
        program.schedule(18);
        const auto save = cluster.strategy().host().engine().save({.folder = "/c"}, "").start();
        cluster.run_for(milliseconds(static_cast<std::int64_t>(seed) / 2));
        run_until_halfway(cluster, rounds, 0);
      }
      cluster.kill_chief();
      cluster.start_chief();
    }
    Program program(cluster);
    program.run_what_is_left();
    EXPECT_THAT(program.counters.value_of_rows(), Each(1.0f));
    EXPECT_THAT(program.sums(), Each(100.0f));
    EXPECT_EQ(program.lost(), 0u);
  }
}

TEST_P(JournaledRounds, AWorkerThatDiesWithTheCoordinatorTakesNothingWithIt) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    AppliedRounds rounds;
    SimulatedCluster cluster(options(seed, &rounds));
    {
      Program program(cluster);
      program.schedule(30);
      run_until_halfway(cluster, rounds, static_cast<int>(seed % 5));
    }
    cluster.kill_chief();
    cluster.kill_worker(static_cast<int>(seed % 3));
    cluster.start_worker(static_cast<int>(seed % 3));
    cluster.start_chief();
    Program program(cluster);
    program.run_what_is_left();
    EXPECT_THAT(program.counters.value_of_rows(), Each(1.0f));
    EXPECT_THAT(program.sums(), Each(100.0f));
  }
}

// It is short of members, and the program that could schedule more is not there yet.
TEST_P(JournaledRounds, ARoundThatIsShortEndsBeforeTheProgramHasItsStrategy) {
  SimulatedCluster cluster(options(1));
  {
    Program program(cluster);
    program.schedule(1);
    cluster.run_for(milliseconds(20));
  }
  cluster.kill_chief();
  cluster.start_chief();
  EXPECT_EQ(resumed(cluster).open, 1u);
  EXPECT_EQ(resumed(cluster).global_step, 1);
  Program program(cluster);
  EXPECT_THAT(program.sums(), Each(1.0f));
  program.run(5);
  EXPECT_THAT(program.sums(), Each(6.0f));
}

// Shards would take what they have of the closures for other pushes than those that come.
TEST_P(JournaledRounds, OpenClosuresAreNotGoneOnWithUnderAnotherConsistency) {
  SimulatedCluster cluster(options(1));
  {
    Program program(cluster);
    program.schedule(1);
    cluster.run_for(milliseconds(20));
  }
  cluster.kill_chief();
  cluster.set_consistency(Consistency::asynchronous());
  try {
    cluster.start_chief();
    ADD_FAILURE() << "it went on";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("is under " + GetParam().consistency.text()),
                      HasSubstr("this program under asynchronous"), HasSubstr("1 of its closures"),
                      HasSubstr("start the program under")));
  }
  cluster.set_consistency(GetParam().consistency);
  cluster.start_chief();
  cluster.run_for(milliseconds(20));
  cluster.kill_chief();
  cluster.set_consistency(Consistency::bounded(2));  // nothing is open any more
  cluster.start_chief();
  EXPECT_THAT(Program(cluster).sums(), Each(1.0f));
}

// A successor would not know of the round, so that no shard is asked to apply it.
TEST_P(JournaledRounds, ARoundThatCannotBeRecordedIsAppliedNowhereAndAnErrorOfTheProgram) {
  AppliedRounds rounds;
  SimulatedCluster cluster(options(1, &rounds));
  {
    Program program(cluster);
    program.run(9);
    cluster.run_for(milliseconds(100));
    const std::size_t before = rounds.times.size();
    program.schedule(3);
    for (const std::uint64_t pushes = rounds.pushes; rounds.pushes == pushes;)
      cluster.run_for(microseconds(10));
    cluster.disk().set_capacity(cluster.disk().bytes_used());
    EXPECT_THROW(program.coordinator.join(kPatience), ResourceExhaustedError);
    EXPECT_EQ(rounds.times.size(), before);
  }
  cluster.disk().set_capacity(std::uint64_t{1} << 40);
  cluster.kill_chief();
  cluster.start_chief();
  EXPECT_EQ(resumed(cluster).open, 3u);
  EXPECT_THAT(Program(cluster).sums(), Each(12.0f));
}

INSTANTIATE_TEST_SUITE_P(, JournaledRounds,
                         ::testing::Values(Kind{"Synchronous", Consistency::synchronous()},
                                           Kind{"WithABackup", Consistency::synchronous(1)},
                                           Kind{"Hybrid", HybridConsistency::make()}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace cairn
