// A coordinator dies with the power of its machine, or while what its journal tells of changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/strategy/journal/journaled_program.h"

namespace cairn {
namespace {
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The journal's newest part goes with the power. Shards tell which closures it had told of: these
// count as steps, and where a ps lacks them as lost there.
TEST(PowerLoss, RowsAreWhatIsCountedHoweverOftenTheCoordinatorsPowerGoes) {
  const Dataset data = numbers(Counters::kRows).repeat();
  std::uint64_t unrecorded = 0, lost = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimulatedCluster cluster{{.ps = 2,
                              .workers = 2,
                              .seed = seed,
                              .disk_delay_max = microseconds(300),
                              .journal = true}};
    cluster.disk().set_unsynced_kept(static_cast<int>(seed * 37 % 101));
    std::int64_t reached = 0;
    for (int life = 0; life < 3; ++life) {
      Program program(cluster, data);
      EXPECT_GE(program.step(), reached) << "seed " << seed;
      program.run(static_cast<int>(random_key(seed, "run") % 20));
      reached = program.step();
      for (int i = 0; i < 200; ++i) program.coordinator.schedule(program.add, {program.batches});
      cluster.run_for(microseconds(random_key(seed, static_cast<std::uint64_t>(life)) % (60'000)));
      // A worker that dies with it has pushed to one ps and not to the other.
      cluster.network().cut("worker0", "ps1");
      cluster.run_for(milliseconds(1));
      cluster.kill_worker(0);
      cluster.kill_chief_by_power();
      cluster.network().heal("worker0", "ps1");
      cluster.start_worker(0);
      cluster.start_chief();
      unrecorded += cluster.strategy().host().engine().resumed()->unrecorded;
    }
    Program program(cluster, data);
    program.run(5);
    const auto step = static_cast<float>(program.step());
    const float lacking_v = step - program.counters.value_of_v(),
                lacking_w = step - program.counters.value_of_w();
    const auto stats = program.coordinator.stats();
    EXPECT_GE(std::min(lacking_v, lacking_w), 0.0f) << "seed " << seed;
    EXPECT_EQ(lacking_v + lacking_w, static_cast<float>(stats.lost_updates)) << "seed " << seed;
    EXPECT_LE(program.sum_of_rows(), step);
    EXPECT_GE(program.sum_of_rows(), step - lacking_v - lacking_w);
    lost += stats.lost_updates;
  }
  EXPECT_GT(unrecorded, 100u);
  EXPECT_GT(lost, 0u);
  EXPECT_LT(lost, unrecorded);
}

// A folder that was copied back, say.
TEST(PowerLoss, AnOlderStateOfTheJournalIsRefusedAndNamesWhoKnowsMore) {
  SimulatedCluster cluster{{.ps = 2, .workers = 2, .journal = true}};
  std::map<std::string, std::string> older;
  {
    Program program(cluster);
    program.run(10);
    cluster.run_for(seconds(1));
    for (const std::string& name : cluster.disk().list("/journal"))
      if (name.starts_with("journal-")) older[name] = cluster.disk().read("/journal/" + name);
    program.run(10);
    cluster.run_for(seconds(1));
  }
  cluster.kill_chief();
  for (const auto& [name, bytes] : older)
    cluster.disk().write_atomically("/journal/" + name, bytes);
  try {
    cluster.start_chief();
    ADD_FAILURE() << "it went on";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("shard 0 of /job:ps/task:0 has closures up to 20"),
                                    HasSubstr("older state"), HasSubstr("cairn ckpt list")));
  }
}

// Its rows may not all have come.
TEST(JournalOfChange, APsWhoseRebuildACoordinatorDidNotLiveToEndIsRebuiltByTheNext) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimulatedCluster cluster{
        {.ps = 2, .workers = 2, .seed = seed, .disk_delay_max = milliseconds(2), .journal = true}};
    {
      Program program(cluster);
      program.run(10);
      program.coordinator.save({.folder = "/c"});
      program.run(3);
      cluster.run_for(milliseconds(100));  // their ends are in the journal
      cluster.kill_ps(0);
      cluster.start_ps(0);
      cluster.run_for(microseconds(seed * 300));
    }
    cluster.kill_chief();
    cluster.start_chief();
    Program program(cluster);
    const float v = program.counters.value_of_v(), w = program.counters.value_of_w();
    EXPECT_EQ(program.coordinator.stats().lost_updates, 3u) << "seed " << seed;
    EXPECT_EQ(std::min(v, w), 10.0f) << "seed " << seed;
    EXPECT_EQ(std::max(v, w), 13.0f) << "seed " << seed;
  }
}

// A successor looks for the one that the journal names.
TEST(JournalOfChange, ACheckpointGoesOnlyOnceTheJournalNamesANewerOne) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimulatedCluster cluster{
        {.ps = 2, .workers = 2, .seed = seed, .disk_delay_max = milliseconds(2), .journal = true}};
    {
      Program program(cluster);
      program.run(4);
      program.coordinator.save({.folder = "/c", .keep_last = 1});
      program.run(3);
      rpc::TaskGroup calls([](const std::string&, const ErrorParts&) {});
      auto save = cluster.strategy().host().engine().save({.folder = "/c", .keep_last = 1}, "");
      calls.spawn("save", save.start().ignoreResult());
      cluster.run_for(microseconds(seed * 300));
    }
    cluster.kill_chief();
    cluster.start_chief();
    Program program(cluster);
    EXPECT_EQ(program.counters.value_of_v(), 7.0f) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cairn
