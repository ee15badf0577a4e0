#include "tests/coordinator/engine/checkpoint_fixture.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Restores : Checkpoints {
  explicit Restores(EngineOptions options = {}) : Checkpoints(std::move(options)) {
    step();
    step();
    checkpoint = save();
    step();
    forget_calls();
  }
  std::string checkpoint;
};

TEST_F(Restores, GiveEachPsItsRowsAndOpenItLast) {
  pumped = 0;
  restore(checkpoint);
  for (std::size_t i : {0u, 1u})
    EXPECT_THAT(fake_ps(i).calls, ElementsAre("restore " + checkpoint, "open"));
  EXPECT_EQ(progress.global_step(), 2);
  EXPECT_EQ(sources.restored, sources.newest);
  EXPECT_EQ(sources.restored->folder, checkpoint);
  EXPECT_EQ(pumped, 1);
}

TEST_F(Restores, HoldBackClosuresMeanwhile) {
  fake_ps(0).script.stall("restore");
  auto restored = begin_restore(checkpoint);
  const auto closure = schedule_and_send();
  EXPECT_EQ(gate.obstacle(*closure), "waiting for tables to be made or restored");
  fake_ps(0).script.let_go("restore");
  wait(restored);
  EXPECT_EQ(gate.obstacle(*closure), "");
}

TEST_F(Restores, OfAnotherModelChangeNothing) {
  auto other = manifest(checkpoint);
  other.variables[0].shape = {3};
  storage::commit(ground.disk, checkpoint, other);
  try {
    restore(checkpoint);
    FAIL() << "it was restored";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(checkpoint), HasSubstr("v")));
  }
  for (std::size_t i : {0u, 1u}) EXPECT_THAT(fake_ps(i).calls, IsEmpty());
  EXPECT_EQ(progress.global_step(), 3);
  EXPECT_EQ(sources.restored, nullptr);
  EXPECT_FALSE(checkpointer.busy());
}

TEST_F(Restores, OfWhatDoesNotExistChangeNothing) {
  EXPECT_THROW(restore("/c/ckpt-00000009"), NotFoundError);
  for (std::size_t i : {0u, 1u}) EXPECT_THAT(fake_ps(i).calls, IsEmpty());
  EXPECT_EQ(progress.global_step(), 3);
}

TEST_F(Restores, OfADamagedManifestChangeNothing) {
  ground.disk.flip_bit(checkpoint + "/" + storage::kManifestFile, 20);
  EXPECT_THROW(restore(checkpoint), DataLossError);
  for (std::size_t i : {0u, 1u}) EXPECT_THAT(fake_ps(i).calls, IsEmpty());
}

TEST_F(Restores, WaitForASaveThatIsUnderWay) {
  fake_ps(1).script.stall("save");
  auto saved = begin();
  auto restored = begin_restore(checkpoint);
  EXPECT_THAT(fake_ps(0).calls_of("restore"), IsEmpty());
  fake_ps(1).script.let_go("save");
  wait(saved);
  wait(restored);
  EXPECT_THAT(fake_ps(0).calls_of("restore"), SizeIs(1));
}

// From the first word on the run is that of the checkpoint: no ps may come back with older rows.
TEST_F(Restores, DuringWhichAPsIsLostEndOnceItIsRebuiltFromTheSameCheckpoint) {
  const std::string later = save();
  forget_calls();
  fake_ps(1).script.stall("restore");
  auto restored = begin_restore(checkpoint);
  ASSERT_THAT(fake_ps(1).calls_of("restore"), SizeIs(1));
  fake_ps(1).process.cut_off();  // even the same process
  fake_ps(1).calls.clear();
  run_for(milliseconds(5));
  fake_ps(1).script.let_go("restore");
  wait(restored);
  EXPECT_THAT(fake_ps(1).calls_of("restore"), ElementsAre("restore " + checkpoint));
  EXPECT_TRUE(members.all_ps_ready());
  EXPECT_THAT(fake_ps(0).calls_of("restore"), ElementsAre("restore " + checkpoint));
}

// The ps's connection is sound, so that the coordinator does not find it lost by itself.
TEST_F(Restores, GiveAPsItsRowsAgainThatCouldNotTakeThemAtFirst) {
  fake_ps(1).script.fail<UnavailableError>("restore", "the disk is away");
  auto restored = begin_restore(checkpoint);
  run_for(seconds(1));
  EXPECT_FALSE(ended(restored));
  fake_ps(1).script.mend("restore");
  fake_ps(1).calls.clear();
  wait(restored);
  EXPECT_THAT(fake_ps(1).calls,
              ElementsAre("configure", "restore " + checkpoint, "fence", "announce", "open"));
}

TEST_F(Restores, ARunThatGoesOnFromAnothersCheckpointNamesItAsAnAncestor) {
  auto other = manifest(checkpoint);
  other.session = 99;
  storage::commit(ground.disk, checkpoint, other);
  restore(checkpoint);
  const auto made = manifest(save());
  EXPECT_THAT(made.ancestors, ElementsAre(storage::Ancestor{99, 1}));
}

struct RestoresWithoutRecovery : Restores {
  RestoresWithoutRecovery() : Restores({.recovery = false}) {}
};

TEST_F(RestoresWithoutRecovery, FailAsAPsIsLost) {
  fake_ps(1).script.stall("restore");
  auto restored = begin_restore(checkpoint);
  lose(1);
  ASSERT_TRUE(ended(restored));
  try {
    wait(restored);
    FAIL() << "it was restored";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no checkpoint can be restored without /job:ps/task:1"));
  }
  EXPECT_FALSE(checkpointer.busy());
}

}  // namespace
}  // namespace cairn
