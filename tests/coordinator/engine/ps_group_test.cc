#include "coordinator/engine/ps_group.h"

#include "tests/coordinator/engine/part_fixture.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kCheckpoint = "/c/ckpt-00000001";

struct KeptPs : PartTest {
  explicit KeptPs(EngineOptions options = {}) : PartTest(std::move(options)) {}
  // Each ps has a variable, and what it was asked until now is forgotten.
  void begin(std::size_t ps, std::uint32_t shards = 1) {
    start(ps, 2, shards);
    make_variables({"v", "w"});
    watch();
    for (std::size_t i = 0; i < ps; ++i) fake_ps(i).calls.clear();
  }
  // There is a checkpoint of this session that holds both variables and the first `closures`.
  void have_checkpoint(std::uint64_t closures = 0) {
    auto view = std::make_shared<CheckpointView>();
    view->folder = kCheckpoint;
    view->databases = {{.name = "ps0-0"}, {.name = "ps1-0"}};
    view->session = session.number;
    view->applied.low_watermark = closures + 1;
    view->holdings = {closures, {0, 0}};
    SavedVariables saved;
    for (const char* name : {"v", "w"}) saved[name] = {{DType::kFloat32, Shape{}}, UpdateRule{}};
    view->plan = std::make_shared<const RestorePlan>(std::move(saved), kCheckpoint);
    sources.newest = view;
  }
  // Updates that are committed.
  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      const std::uint64_t sequence = schedule_and_send()->sequence;
      const std::size_t worker = !received(0).empty() && received(0).back() == sequence ? 0 : 1;
      succeed(worker, sequence);
    }
  }
  void lose(std::size_t i) {
    fake_ps(i).process.crash();
    settle();
    fake_ps(i).calls.clear();
  }
  // Another process of this ps begins to listen, and is found.
  void restart(std::size_t i) {
    fake_ps(i).start(new_process());
    run_for(seconds(1));
  }
};

TEST_F(KeptPs, ATaskOfAnotherRoleIsRefused) {
  begin(1);
  ps(0).address = fake_worker(0).process.address();
  try {
    ground.reactor.wait(ps_group.connect(&ps(0)));
    FAIL() << "it was taken for a ps";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/job:ps/task:0: at sim://worker0 there is /job:worker"));
  }
}

// Two names of one host are not known for one address until the task behind them says who it is.
TEST_F(KeptPs, AnotherTaskOfTheRoleIsRefusedByBothNames) {
  begin(2);
  ps(1).address = fake_ps(0).process.address();
  try {
    ground.reactor.wait(ps_group.connect(&ps(1)));
    FAIL() << "one process is two tasks";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/job:ps/task:1: at sim://ps0 there is /job:ps/task:0"));
  }
}

TEST_F(KeptPs, TheSameProcessKeepsItsRows) {
  begin(1);
  have_checkpoint();
  fake_ps(0).process.cut_off();
  run_for(seconds(1));
  EXPECT_TRUE(ps(0).ready);
  EXPECT_THAT(fake_ps(0).calls, ElementsAre("configure", "fence", "announce", "open"));
}

TEST_F(KeptPs, ANewProcessIsConfiguredGivenItsRowsFencedAndOpenedLast) {
  begin(2);
  have_checkpoint();
  lose(0);
  restart(0);
  EXPECT_TRUE(ps(0).ready);
  EXPECT_THAT(fake_ps(0).calls, ElementsAre("configure", "begin anew", str("restore ", kCheckpoint),
                                            "fence", "announce", "open"));
  EXPECT_THAT(fake_ps(1).calls_of("configure"), IsEmpty());  // the other one serves on
}

TEST_F(KeptPs, ANewProcessWithoutACheckpointBeginsAtItsInitialValues) {
  begin(2);
  lose(0);
  restart(0);
  EXPECT_TRUE(ps(0).ready);
  EXPECT_THAT(fake_ps(0).calls,
              ElementsAre("configure", "begin anew", "fence", "announce", "open"));
}

TEST_F(KeptPs, ANewProcessMakesANewLayoutAndAnswersInTheNextEpoch) {
  begin(1);
  const std::uint64_t before = tables.synced_version();
  fake_ps(0).process.cut_off();
  run_for(seconds(1));
  EXPECT_EQ(tables.synced_version(), before);
  EXPECT_EQ(tables.synced()->shards[0].epoch, 1u);
  lose(0);
  restart(0);
  EXPECT_GT(tables.synced_version(), before);
  EXPECT_EQ(tables.synced()->shards[0].primary.process, ps(0).process);
  EXPECT_EQ(tables.synced()->shards[0].epoch, 2u);
}

TEST_F(KeptPs, WhatTheCheckpointDidNotHaveIsCountedAsLost) {
  begin(2);
  train(2);
  have_checkpoint(2);
  train(3);
  lose(0);
  restart(0);
  ASSERT_TRUE(ps(0).ready);
  EXPECT_EQ(losses.lost_updates(), 3u);
  EXPECT_EQ(losses.reports().at(0).lost_updates, 3u);
}

TEST_F(KeptPs, APsThatIsAwayHasNoShards) {
  begin(2);
  lose(0);
  EXPECT_FALSE(ps(0).ready);
  EXPECT_THAT(members.all_shards(), SizeIs(1));
}

TEST_F(KeptPs, IsFencedAgainIfALaneIsLostBeforeItIsOpen) {
  begin(1);
  lose(0);
  fake_ps(0).script.stall("open");
  restart(0);
  ASSERT_THAT(fake_ps(0).calls_of("open"), SizeIs(1));
  EXPECT_FALSE(ps(0).ready);
  fake_ps(0).fences.clear();
  fake_worker(0).process.crash();
  settle();
  EXPECT_THAT(fake_ps(0).fences, IsEmpty());  // it is not open yet
  fake_ps(0).calls.clear();
  fake_ps(0).script.let_go("open");
  run_for(milliseconds(100));
  EXPECT_TRUE(ps(0).ready);
  EXPECT_THAT(fake_ps(0).calls, ElementsAre("fence", "announce", "open"));
  EXPECT_THAT(fake_ps(0).fences, ElementsAre(FakePs::Fence{2, {2}}));
}

// Its rows are from an attempt that came to nothing: it is not known which of them it has.
TEST_F(KeptPs, AProcessThatIsLostAgainBeforeItServesIsRebuiltFromTheBeginning) {
  begin(2);
  have_checkpoint();
  lose(0);
  fake_ps(0).script.stall("fence");
  restart(0);
  ASSERT_THAT(fake_ps(0).calls_of("fence"), SizeIs(1));
  fake_ps(0).process.cut_off();
  fake_ps(0).calls.clear();
  run_for(milliseconds(5));
  fake_ps(0).script.let_go("fence");
  run_for(seconds(1));
  EXPECT_TRUE(ps(0).ready);
  EXPECT_THAT(fake_ps(0).calls, ElementsAre("configure", "begin anew", str("restore ", kCheckpoint),
                                            "fence", "announce", "open"));
}

TEST_F(KeptPs, OneThatFallsSilentWhileItIsAttachedLetsTheOthersTalkAboutTheirTables) {
  start(2, 0);
  fake_ps(0).script.stall("configure");
  fake_ps(0).script.stall("ping");
  ps(0).ready = false;
  auto attached = ps_group.attach_in_time(&ps(0)).start();
  settle();
  EXPECT_TRUE(lock.held());
  run_for(seconds(2));
  EXPECT_FALSE(lock.held());
  EXPECT_THROW(wait(attached), UnavailableError);
}

TEST_F(KeptPs, ANewProcessWaitsForACheckpointThatIsOnItsWayToTheDisk) {
  begin(2);
  sources.writing = true;
  lose(0);
  restart(0);
  EXPECT_THAT(fake_ps(0).calls, IsEmpty());
  EXPECT_FALSE(lock.held());
  have_checkpoint();
  sources.writing = false;
  session.changed.notify_all();
  run_for(milliseconds(100));
  EXPECT_TRUE(ps(0).ready);
  EXPECT_THAT(fake_ps(0).calls_of("restore"), ElementsAre(str("restore ", kCheckpoint)));
}

TEST_F(KeptPs, WaitsForTheTablesToBeFree) {
  begin(1);
  {
    const TableLock::Hold hold(lock);
    fake_ps(0).process.cut_off();
    run_for(seconds(1));
    EXPECT_THAT(fake_ps(0).calls, IsEmpty());
  }
  run_for(milliseconds(100));
  EXPECT_TRUE(ps(0).ready);
}

TEST_F(KeptPs, OneThatComesBackWithAnotherNumberOfShardsIsRefusedWithTheCure) {
  begin(1, 2);
  lose(0);
  fake_ps(0).start(new_process(), 1);
  run_for(seconds(1));
  EXPECT_FALSE(ps(0).ready);
  EXPECT_THAT(ps(0).trouble, HasSubstr("came back with 1 shards, it had 2; start it with "
                                       "--shards 2"));
  EXPECT_THAT(fake_ps(0).calls, IsEmpty());
}

TEST_F(KeptPs, AnAbsenceIsReportedFromTheLossToTheReturn) {
  begin(1);
  lose(0);
  run_for(seconds(2));
  EXPECT_LT(losses.reports().at(0).back_after_seconds, 0);
  restart(0);
  EXPECT_NEAR(losses.reports().at(0).back_after_seconds, 2.25, 0.3);
}

TEST_F(KeptPs, ADamagedCheckpointIsTheProgramsErrorAtOnce) {
  begin(2);
  have_checkpoint();
  schedule();
  fake_ps(0).script.fail<DataLossError>("restore", "block 7: checksum");
  lose(0);
  restart(0);
  EXPECT_FALSE(ps(0).ready);
  EXPECT_TRUE(ps(0).lost_for_good);
  EXPECT_THAT(queue_error(), AllOf(HasSubstr(str("from ", kCheckpoint)),
                                   HasSubstr("block 7: checksum"), HasSubstr("cairn ckpt verify")));
}

struct ImpatientPs : KeptPs {
  ImpatientPs() : KeptPs({.ps_wait = seconds(3)}) {}
};

TEST_F(ImpatientPs, IsGivenUpWhenItHasBeenAwayForTooLong) {
  begin(1);
  schedule();
  lose(0);
  run_for(seconds(2));
  EXPECT_EQ(queue_error(), "");
  run_for(seconds(2));
  EXPECT_TRUE(ps(0).lost_for_good);
  EXPECT_THAT(queue_error(), HasSubstr("/job:ps/task:0 at sim://ps0 has been away for 3 s"));
}

struct UnrecoveredPs : KeptPs {
  UnrecoveredPs() : KeptPs({.recovery = false}) {}
};

TEST_F(UnrecoveredPs, IsGivenUpAtOnce) {
  begin(1);
  schedule();
  lose(0);
  EXPECT_TRUE(ps(0).lost_for_good);
  EXPECT_THAT(queue_error(), AllOf(HasSubstr("/job:ps/task:0 at sim://ps0 is lost"),
                                   HasSubstr("run with recovery on")));
}

}  // namespace
}  // namespace cairn
