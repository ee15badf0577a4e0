#include "coordinator/checkpointer.h"

#include "storage/folder_lock.h"
#include "storage/manifest.h"
#include "tests/coordinator/part_fixture.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kFirst = "/c/ckpt-00000001";
constexpr const char* kSecond = "/c/ckpt-00000002";

// Two ps of one shard, each with a variable, and two workers of one lane.
struct Checkpoints : PartTest {
  int pumped = 0;
  CheckpointParts parts{session, members, tables, lock, sources, progress, losses};
  Checkpointer checkpointer{parts, CutMaker(parts, dispatcher), [this] {
                              ++pumped;
                              dispatcher.pump();
                            }};

  explicit Checkpoints(EngineOptions options = {}) : PartTest(std::move(options)) {
    start(2, 2);
    make_variables({"v", "w"});
    watch();
    forget_calls();
  }
  ~Checkpoints() override { stop(); }

  kj::Promise<std::string> begin(const std::string& metadata = "{}") {
    auto saved = checkpointer.save({.folder = "/c"}, metadata).start();
    settle();
    return saved;
  }
  std::string save(const std::string& metadata = "{}") {
    auto saved = begin(metadata);
    return wait(saved);
  }
  kj::Promise<void> begin_restore(const std::string& checkpoint) {
    auto restored = checkpointer.restore(checkpoint, {}).start();
    settle();
    return restored;
  }
  void restore(const std::string& checkpoint) {
    auto restored = begin_restore(checkpoint);
    wait(restored);
  }
  // One update that is committed.
  void step() {
    const std::uint64_t sequence = schedule_and_send()->sequence;
    succeed(!received(0).empty() && received(0).back() == sequence ? 0 : 1, sequence);
  }
  bool exists(const std::string& checkpoint) {
    return ground.disk.exists(checkpoint + "/" + storage::kManifestFile);
  }
  // Has the folder anything of this checkpoint?
  bool left_over(const std::string& checkpoint) { return !ground.disk.list(checkpoint).empty(); }
  storage::Manifest manifest(const std::string& checkpoint) {
    return storage::read_manifest(ground.disk, checkpoint);
  }
  bool pushes_are_held() { return fake_lane(0).holds_pushes || fake_lane(1).holds_pushes; }
  void forget_calls() {
    for (std::size_t i : {0u, 1u}) fake_ps(i).calls.clear();
  }
  void lose(std::size_t i) {
    fake_ps(i).process.crash();
    settle();
  }
  void restart(std::size_t i) {
    fake_ps(i).start(new_process());
    run_for(seconds(1));
  }
};

struct Saves : Checkpoints {
  using Checkpoints::Checkpoints;
};

TEST_F(Saves, NeedAFolder) {
  auto saved = checkpointer.save({}, "").start();
  EXPECT_THROW(wait(saved), InvalidArgumentError);
  EXPECT_FALSE(checkpointer.busy());
}

TEST_F(Saves, WriteTheManifestLast) {
  fake_ps(1).script.stall("save");
  auto saved = begin();
  EXPECT_TRUE(ground.disk.exists(str(kFirst, "/ps0-0/rows")));
  EXPECT_FALSE(exists(kFirst));
  EXPECT_EQ(sources.newest, nullptr);  // a lost ps takes the checkpoint before
  fake_ps(1).script.let_go("save");
  EXPECT_EQ(wait(saved), kFirst);
  EXPECT_TRUE(exists(kFirst));
  ASSERT_NE(sources.newest, nullptr);
  EXPECT_EQ(sources.newest->folder, kFirst);
  EXPECT_FALSE(sources.writing);
}

TEST_F(Saves, TrainingGoesOnWhileRowsAreWritten) {
  fake_ps(1).script.stall("save");
  auto saved = begin();
  EXPECT_FALSE(pushes_are_held());
  step();
  EXPECT_EQ(progress.global_step(), 1);
  fake_ps(1).script.let_go("save");
  EXPECT_EQ(manifest(wait(saved)).global_step, 0);  // of the cut
}

TEST_F(Saves, HoldStepVariablesAndDatabases) {
  step();
  step();
  const auto made = manifest(save(R"({"epoch":3})"));
  EXPECT_EQ(made.global_step, 2);
  EXPECT_EQ(made.session, session.number);
  EXPECT_EQ(made.metadata, R"({"epoch":3})");
  ASSERT_THAT(made.variables, SizeIs(2));
  EXPECT_EQ(made.variables[0].name, "v");
  ASSERT_THAT(made.databases, SizeIs(2));
  EXPECT_EQ(made.databases[0].name, "ps0-0");
  EXPECT_EQ(made.databases[1].name, "ps1-0");
}

TEST_F(Saves, HoldVariablesThatNoClosureHasUsed) {
  tables.registry().create({.name = "late", .shape = {}});
  EXPECT_THAT(manifest(save()).variables, SizeIs(3));
}

// As after a restore from a damaged checkpoint, where no step follows: an empty one would be the
// newest.
TEST_F(Saves, OfVariablesThatCannotBeMadeFailAndLeaveNothing) {
  step();
  const std::string before = save();
  restore(before);
  for (std::size_t i : {0u, 1u})
    fake_ps(i).script.fail<DataLossError>("configure", "the file of rows is too short");
  tables.registry().create({.name = "late", .shape = {}});
  try {
    save();
    FAIL() << "it was saved";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("too short"));
  }
  EXPECT_FALSE(left_over(kSecond));
  EXPECT_EQ(sources.newest->folder, before);

  for (std::size_t i : {0u, 1u}) fake_ps(i).script.mend("configure");
  EXPECT_THAT(manifest(save()).variables, SizeIs(3));
}

TEST_F(Saves, AreMadeOneAtATime) {
  fake_ps(0).script.stall("save");
  auto first = begin(), second = begin();
  EXPECT_TRUE(checkpointer.busy());
  EXPECT_THAT(fake_ps(0).calls_of("mark"), ElementsAre("mark 1"));
  fake_ps(0).script.let_go("save");
  EXPECT_EQ(wait(first), kFirst);
  EXPECT_EQ(wait(second), kSecond);
  EXPECT_THAT(fake_ps(0).calls, ElementsAre("mark 1", "save 1", "mark 2", "save 2"));
  EXPECT_FALSE(checkpointer.busy());
}

TEST_F(Saves, DuringWhichAPsIsLostBeginAnewOnceItIsBack) {
  fake_ps(1).script.stall("save");
  auto saved = begin();
  lose(1);
  run_for(seconds(1));
  EXPECT_FALSE(ended(saved));
  EXPECT_FALSE(left_over(kFirst));  // what was written is swept
  EXPECT_THAT(fake_ps(0).calls_of("drop"), ElementsAre("drop 1"));
  EXPECT_FALSE(sources.writing);  // the ps is not to wait for this save, which waits for the ps

  fake_ps(1).script.let_go("save");
  fake_ps(1).start(new_process());
  const std::string name = wait(saved);
  EXPECT_TRUE(exists(name));
  EXPECT_THAT(manifest(name).databases, SizeIs(2));
  EXPECT_THAT(fake_ps(0).calls_of("save"), ElementsAre("save 1", "save 2"));
  EXPECT_EQ(session.stats.read().checkpoints, 1u);
}

TEST_F(Saves, StopEveryShardAsTheFirstFailsAndRaiseItsError) {
  fake_ps(1).script.stall("save");
  fake_ps(0).script.fail<DataLossError>("save", "cannot write /c/ckpt-00000001");
  auto saved = begin();
  EXPECT_THAT(fake_ps(1).calls_of("drop"), ElementsAre("drop 1"));
  EXPECT_THROW(wait(saved), DataLossError);
  EXPECT_FALSE(left_over(kFirst));
}

TEST_F(Saves, ToAFullDiskFailNamingTheFolderAndLeaveTheRunGoing) {
  step();
  ASSERT_EQ(save(), kFirst);
  ground.disk.set_capacity(ground.disk.bytes_used() + 5);  // less than the rows of a shard
  try {
    save();
    FAIL() << "it was saved";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr(kSecond));
  }
  EXPECT_FALSE(left_over(kSecond));
  EXPECT_TRUE(exists(kFirst));
  EXPECT_EQ(sources.newest->folder, kFirst);
  EXPECT_FALSE(sources.writing);
  EXPECT_FALSE(checkpointer.busy());
  step();
  EXPECT_EQ(progress.global_step(), 2);

  ground.disk.set_capacity(1 << 20);
  EXPECT_EQ(manifest(save()).global_step, 2);
}

TEST_F(Saves, WhoseManifestDoesNotFitLeaveNothing) {
  ground.disk.set_capacity(ground.disk.bytes_used() + 200);  // the rows of both shards do
  EXPECT_THROW(save(), ResourceExhaustedError);
  EXPECT_THAT(fake_ps(1).calls_of("save"), ElementsAre("save 1"));
  EXPECT_FALSE(left_over(kFirst));
  EXPECT_EQ(sources.newest, nullptr);  // no ps is rebuilt from what does not exist
}

TEST_F(Saves, RemoveOlderOnesOnlyOnceTheNewOneIsWhole) {
  const auto save_one = [this] {
    return checkpointer.save({.folder = "/c", .keep_last = 1}, "{}");
  };
  ASSERT_EQ(ground.reactor.wait(save_one()), kFirst);
  fake_ps(1).script.stall("save");
  auto second = save_one().start();
  settle();
  EXPECT_TRUE(exists(kFirst));
  fake_ps(1).script.let_go("save");
  wait(second);
  EXPECT_FALSE(exists(kFirst));
  EXPECT_TRUE(exists(kSecond));
}

TEST_F(Saves, AreRefusedInAFolderToWhichAnotherRunSaves) {
  const auto other = storage::lock_folder(ground.disk, "/c", ground.reactor.clock(), seconds(0));
  try {
    save();
    FAIL() << "it was saved";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("another run saves its checkpoints in /c"));
  }
  EXPECT_THAT(fake_ps(0).calls_of("mark"), IsEmpty());
}

TEST_F(Saves, KeepTheirFolderLockedAfterTheirEnd) {
  save();
  EXPECT_THROW(storage::lock_folder(ground.disk, "/c", ground.reactor.clock(), seconds(0)),
               FailedPreconditionError);
  EXPECT_EQ(save(), kSecond);  // our own
}

TEST_F(Saves, TakeALockThatTheProgramHasAlready) {
  checkpointer.hold_folder(
      storage::lock_folder(ground.disk, "/c", ground.reactor.clock(), seconds(0)));
  EXPECT_EQ(save(), kFirst);
}

struct SavesWithoutRecovery : Checkpoints {
  SavesWithoutRecovery() : Checkpoints({.recovery = false}) {}
};

TEST_F(SavesWithoutRecovery, FailAsAPsIsLost) {
  fake_ps(1).script.stall("save");
  auto saved = begin();
  lose(1);
  EXPECT_THROW(wait(saved), UnavailableError);
  EXPECT_FALSE(left_over(kFirst));
  EXPECT_FALSE(checkpointer.busy());
}

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

// Its connection is sound, so that nobody would find it lost.
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
