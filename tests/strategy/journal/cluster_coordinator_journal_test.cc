// A coordinator with a journal dies, and another one goes on where it stood.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategy/journal/journaled_program.h"

namespace cairn {
namespace {
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

class JournaledRun : public ::testing::Test {
 protected:
  void replace_chief() {
    cluster_.kill_chief();
    cluster_.start_chief();
  }
  const ResumedRun& resumed() { return cluster_.strategy().host().engine().resumed().value(); }

  SimulatedCluster cluster_{{.ps = 2, .workers = 2, .journal = true}};
};

TEST_F(JournaledRun, BeginsARunIfThereIsNone) {
  EXPECT_FALSE(cluster_.strategy().host().engine().resumed());
  Program program(cluster_);
  program.run(10);
  EXPECT_EQ(program.counters.value_of_v(), 10.0f);
}

TEST_F(JournaledRun, GoesOnWithItsRowsAndItsStep) {
  {
    Program program(cluster_);
    program.run(10);
  }
  replace_chief();
  EXPECT_EQ(resumed().global_step, 10);
  EXPECT_EQ(resumed().term, 2u);
  EXPECT_EQ(resumed().open, 0u);
  Program program(cluster_);
  EXPECT_EQ(program.step(), 10);
  EXPECT_EQ(program.counters.value_of_v(), 10.0f);
  EXPECT_EQ(program.coordinator.stats().lost_updates, 0u);
  program.run(5);
  EXPECT_EQ(program.step(), 15);
  EXPECT_EQ(program.counters.value_of_v(), 15.0f);
  std::vector<float> rows = program.counters.value_of_rows();
  rows.resize(15);
  EXPECT_THAT(rows, Each(1.0f));  // the data went on as well
}

// Wherever the coordinator dies: each element is counted once, in every variable.
TEST(JournaledRuns, EachElementCountsOnceHoweverOftenTheCoordinatorDies) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimulatedCluster cluster{{.ps = 2,
                              .workers = 2,
                              .seed = seed,
                              .disk_delay_max = microseconds(300),
                              .journal = true}};
    std::size_t open = 0;
    bool ended = false;
    for (int life = 0; !ended; ++life) {
      ASSERT_LT(life, 100);
      Program program(cluster);
      try {
        while (!ended) {
          for (int i = 0; i < 20; ++i) program.coordinator.schedule(program.add, {program.batches});
          if (life < 6) {
            cluster.run_for(
                microseconds(random_key(seed, static_cast<std::uint64_t>(life)) % 9000));
            break;
          }
          program.coordinator.join(kPatience);
        }
      } catch (const OutOfRangeError&) {
        ended = true;
      }
      if (ended) {
        EXPECT_THAT(program.counters.value_of_rows(), Each(1.0f)) << "seed " << seed;
        EXPECT_EQ(program.counters.value_of_v(), 100.0f);
        EXPECT_EQ(program.counters.value_of_w(), 100.0f);
        EXPECT_EQ(program.step(), 100);
        EXPECT_EQ(program.coordinator.stats().lost_updates, 0u);
        break;
      }
      cluster.kill_chief();
      cluster.start_chief();
      open += cluster.strategy().host().engine().resumed()->open;
    }
    EXPECT_GT(open, 0u) << "no closure was open at any death";
  }
}

TEST_F(JournaledRun, APsThatDiedMeanwhileIsRebuiltAndItsLossCounted) {
  {
    Program program(cluster_);
    program.run(10);
    program.coordinator.save({.folder = "/c"});
    program.run(7);
  }
  cluster_.kill_chief();
  cluster_.kill_ps(0);
  cluster_.start_ps(0);
  cluster_.start_chief();
  Program program(cluster_);
  EXPECT_EQ(program.step(), 17);
  EXPECT_EQ(program.coordinator.stats().lost_updates, 7u);
  const float v = program.counters.value_of_v(), w = program.counters.value_of_w();
  EXPECT_EQ(std::min(v, w), 10.0f);
  EXPECT_EQ(std::max(v, w), 17.0f);
}

TEST_F(JournaledRun, APsThatDiesLaterIsRebuiltFromTheCheckpointOfTheEarlierCoordinator) {
  {
    Program program(cluster_);
    program.run(10);
    program.coordinator.save({.folder = "/c"});
  }
  replace_chief();
  Program program(cluster_);
  program.run(3);
  cluster_.kill_ps(0);
  cluster_.start_ps(0);
  cluster_.run_for(seconds(2));
  EXPECT_EQ(program.coordinator.stats().lost_updates, 3u);
  const float v = program.counters.value_of_v(), w = program.counters.value_of_w();
  EXPECT_EQ(std::min(v, w), 10.0f);
  EXPECT_EQ(std::max(v, w), 13.0f);
}

TEST_F(JournaledRun, AProgramThatMakesOtherVariablesIsToldWhichDiffersAndRowsStay) {
  {
    Program program(cluster_);
    program.run(4);
  }
  replace_chief();
  auto& strategy = cluster_.strategy();
  strategy.create_variable({.name = "v", .shape = {}, .initializer = Initializer::zeros()});
  try {
    strategy.create_variable({.name = "w", .shape = {3}, .initializer = Initializer::zeros()});
    ADD_FAILURE() << "it was made";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("variable number 2"), HasSubstr("\"w\", float32[3]"),
                                    HasSubstr("\"w\", float32[]"), HasSubstr("journal")));
  }
  replace_chief();
  EXPECT_EQ(Program(cluster_).counters.value_of_v(), 4.0f);
}

TEST_F(JournaledRun, AVariableThatIsMadeLaterIsANewOne) {
  {
    Program program(cluster_);
    EXPECT_EQ(program.counters.value_of_v(), 0.0f);
  }
  replace_chief();
  Program program(cluster_);
  const Variable late = cluster_.strategy().create_variable(
      {.name = "v", .shape = {}, .initializer = Initializer::constant(5)});
  EXPECT_EQ(late.name(), "v_1");
  EXPECT_EQ(late.read().eval().item<float>(), 5.0f);
  replace_chief();
  Program again(cluster_);
  const Variable same = cluster_.strategy().create_variable(
      {.name = "v", .shape = {}, .initializer = Initializer::constant(5)});
  EXPECT_EQ(same.read().eval().item<float>(), 5.0f);
}

TEST_F(JournaledRun, ARestoreIsPartOfTheRun) {
  {
    Program program(cluster_);
    program.run(4);
    program.coordinator.save({.folder = "/c"});
    program.run(4);
    program.coordinator.restore("/c/ckpt-00000001");
    program.run(2);
  }
  replace_chief();
  Program program(cluster_);
  EXPECT_EQ(program.step(), 6);
  EXPECT_EQ(program.counters.value_of_v(), 6.0f);
}

TEST_F(JournaledRun, AJournalThatCannotBeWrittenIsAnErrorOfTheProgramThatNamesIt) {
  {
    Program program(cluster_);
    program.run(4);
    cluster_.run_for(seconds(1));
    cluster_.disk().set_capacity(cluster_.disk().bytes_used());
    try {
      program.run(4);
      ADD_FAILURE() << "it went on";
    } catch (const ResourceExhaustedError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("the journal in /journal cannot be written"),
                                      HasSubstr("no space left")));
    }
  }
  cluster_.disk().set_capacity(std::uint64_t{1} << 40);
  replace_chief();
  Program program(cluster_);
  EXPECT_EQ(program.counters.value_of_v(), 4.0f);
  EXPECT_EQ(program.step(), 4);
}

// However far the restore had come: the rows are all those of the checkpoint, or none is.
TEST(JournaledRuns, ACoordinatorThatDiesAsItRestoresLeavesNoMixture) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SimulatedCluster cluster{
        {.ps = 2, .workers = 2, .seed = seed, .disk_delay_max = milliseconds(2), .journal = true}};
    {
      Program program(cluster);
      program.run(4);
      program.coordinator.save({.folder = "/c"});
      program.run(3);
      // The call ends with its coordinator.
      rpc::TaskGroup calls([](const std::string&, const ErrorParts&) {});
      calls.spawn("restore", cluster.strategy().host().engine().restore("/c/ckpt-00000001"));
      cluster.run_for(microseconds(seed * 200));
    }
    cluster.kill_chief();
    cluster.start_chief();
    Program program(cluster);
    const float v = program.counters.value_of_v();
    EXPECT_EQ(program.counters.value_of_w(), v) << "seed " << seed;
    EXPECT_EQ(program.sum_of_rows(), v);
    EXPECT_EQ(static_cast<float>(program.step()), v);
    EXPECT_TRUE(v == 4.0f || v == 7.0f) << v;
    EXPECT_EQ(program.coordinator.stats().lost_updates, 0u);
  }
}

// Folders and shards know marks by their numbers, which go on in the session.
TEST_F(JournaledRun, ItsCheckpointsAreNoneOfTheEarlierOnes) {
  for (int life = 1; life <= 3; ++life) {
    Program program(cluster_);
    program.run(1);
    program.coordinator.save({.folder = "/c", .local_folder = "/local"});
    program.coordinator.restore(str("/c/ckpt-0000000", life));
    EXPECT_EQ(program.counters.value_of_v(), static_cast<float>(life));
    program.coordinator.restore("/c/ckpt-00000001");
    EXPECT_EQ(program.counters.value_of_v(), 1.0f);
    program.coordinator.restore(str("/c/ckpt-0000000", life));
    replace_chief();
  }
}

TEST_F(JournaledRun, DataThatTheEarlierProgramHadNotMadeYetGoesOnWhereItsCheckpointStood) {
  {
    Program program(cluster_);
    program.run(4);
    program.coordinator.save({.folder = "/c"});
  }
  cluster_.kill_chief();
  cluster_.disk().remove_tree("/journal");
  cluster_.start_chief();
  {
    const Counters counters(cluster_.strategy());
    ClusterCoordinator(cluster_.strategy()).restore("/c/ckpt-00000001");
  }
  replace_chief();
  Program program(cluster_);
  EXPECT_EQ(program.counters.value_of_v(), 4.0f);
  program.run(1);
  EXPECT_EQ(program.counters.value_of_rows()[4], 1.0f);
}

}  // namespace
}  // namespace cairn
