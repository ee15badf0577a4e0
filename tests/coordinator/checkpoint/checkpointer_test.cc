#include "storage/checkpoint_folder.h"
#include "storage/folder_lock.h"
#include "tests/coordinator/engine/checkpoint_fixture.h"

namespace cairn {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

std::vector<std::string> databases_of(const storage::Manifest& manifest) {
  std::vector<std::string> names;
  for (const auto& database : manifest.databases) names.push_back(database.name);
  return names;
}

// Each has the files of those that it goes back to, so that it stands alone.
TEST_F(Saves, BetweenFullOnesAreDeltas) {
  full_every = 3;
  const auto full = manifest(save()), first = manifest(save()), second = manifest(save());
  EXPECT_EQ(full.base, "");
  EXPECT_THAT(databases_of(full), ElementsAre("ps0-0", "ps1-0"));
  EXPECT_EQ(first.base, "ckpt-00000001");
  EXPECT_THAT(databases_of(first),
              ElementsAre("ckpt-00000001.ps0-0", "ckpt-00000001.ps1-0", "ps0-0", "ps1-0"));
  EXPECT_EQ(second.base, "ckpt-00000002");
  EXPECT_THAT(databases_of(second),
              ElementsAre("ckpt-00000001.ps0-0", "ckpt-00000001.ps1-0", "ckpt-00000002.ps0-0",
                          "ckpt-00000002.ps1-0", "ps0-0", "ps1-0"));
  for (const auto& database : second.databases)
    for (const auto& file : database.files)
      EXPECT_TRUE(ground.disk.exists(str("/c/ckpt-00000003/", file.name))) << file.name;
  EXPECT_EQ(manifest(save()).base, "") << "the third is a full one again";
  EXPECT_THAT(fake_ps(0).calls_of("mark"),
              ElementsAre("mark 1", "mark 2 since 1", "mark 3 since 2", "mark 4"));
}

TEST_F(Saves, AreFullWhereNoShardKnowsTheBase) {
  full_every = 3;
  save();
  fake_ps(0).knows_bases = fake_ps(1).knows_bases = false;
  EXPECT_THAT(databases_of(manifest(save())), ElementsAre("ps0-0", "ps1-0"));
}

// As in a bucket: deltas name what their base wrote, which stays while one of them is kept.
TEST_F(Saves, WhereFilesHaveOneNameLieInAFolderForEachAttempt) {
  ground.disk.set_links(false);
  full_every = 3;
  const auto rows = [&](std::uint64_t attempt) {
    return storage::rows_folder_name(session.number, attempt);
  };
  const auto full = manifest(save()), delta = manifest(save());
  EXPECT_THAT(databases_of(full),
              ElementsAre("../" + rows(1) + "/ps0-0", "../" + rows(1) + "/ps1-0"));
  EXPECT_THAT(databases_of(delta),
              ElementsAre("../" + rows(1) + "/ps0-0", "../" + rows(1) + "/ps1-0",
                          "../" + rows(2) + "/ps0-0", "../" + rows(2) + "/ps1-0"));
  EXPECT_EQ(delta.databases.back().files.at(0).name, "../" + rows(2) + "/ps1-0/rows");

  fake_ps(0).script.fail<DataLossError>("save", "cannot write");
  EXPECT_THROW(save(), DataLossError);
  EXPECT_THAT(ground.disk.list("/c"),
              ElementsAre("ckpt-00000001", "ckpt-00000002", rows(1), rows(2)))
      << "a save that fails leaves nothing";
}

// Another run was first, and its checkpoint stays as it is.
TEST_F(Saves, OfANumberThatAnotherRunHasSavedMeanwhileFailAndNameIt) {
  ground.disk.set_links(false);
  fake_ps(0).script.stall("save");
  auto saved = begin();
  storage::Manifest other{.checkpoint = 1, .global_step = 17};
  other.session = 4711;
  ground.disk.make_folder(kFirst);
  storage::commit(ground.disk, kFirst, other);
  fake_ps(0).script.let_go("save");
  try {
    wait(saved);
    FAIL() << "it was saved";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("its session is 4711"));
  }
  EXPECT_EQ(manifest(kFirst), other);
  EXPECT_THAT(ground.disk.list("/c"), ElementsAre("ckpt-00000001"));
  EXPECT_EQ(sources.newest, nullptr);
}

TEST_F(Saves, ThatPassAreNoPartOfTheChain) {
  full_every = 3;
  save();
  auto passing = checkpointer.save({.folder = "/passing", .lasting = false}, "{}").start();
  EXPECT_EQ(manifest(wait(passing)).base, "");
  EXPECT_EQ(manifest(save()).base, "ckpt-00000001");
}

TEST_F(Saves, AreFullWhereTheBaseHoldsRowsOtherwise) {
  full_every = 9;
  save();
  encoding.compression = storage::Compression::kZstd;
  EXPECT_EQ(manifest(save()).base, "");
  EXPECT_EQ(manifest(save()).base, "ckpt-00000002");
  encoding = {};
  EXPECT_EQ(manifest(save()).base, "");
}

TEST_F(Saves, StateHowRowsAreHeldAndOfWhichVariables) {
  encoding = {.rows = storage::RowForm::kInt8, .variables = {"v*"}};
  const auto saved = manifest(save());
  ASSERT_THAT(saved.variables, SizeIs(2));
  EXPECT_EQ(saved.variables[0].row_form, storage::RowForm::kInt8);
  EXPECT_EQ(saved.variables[1].row_form, storage::RowForm::kExact) << "nobody asked for w";
  EXPECT_THAT(fake_ps(0).calls_of("save"), ElementsAre("save 1 as int8, exact: v"));
}

TEST_F(Saves, WithAPatternThatIsNoneAreRefusedBeforeTheCut) {
  encoding = {.rows = storage::RowForm::kInt8, .variables = {"v["}};
  EXPECT_THROW(save(), InvalidArgumentError);
  EXPECT_THAT(fake_ps(0).calls_of("mark"), IsEmpty());
}

TEST_F(Saves, AreFullAfterARestoreAndWhereTheBaseIsGone) {
  full_every = 9;
  const std::string full = save();
  restore(full);
  EXPECT_EQ(manifest(save()).base, "");
  EXPECT_EQ(manifest(save()).base, "ckpt-00000002");
  ground.disk.remove_tree("/c/ckpt-00000003");
  EXPECT_EQ(manifest(save()).base, "");
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
  EXPECT_FALSE(left_over(kFirst));  // the checkpoint's files are swept
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

// Its rows lie on its own machine: a manifest would name what only that ps can read.
TEST_F(Saves, OfAPsThatDoesNotShareTheFolderAreRefusedAndSayWhatToDo) {
  step();
  ASSERT_EQ(save(), kFirst);
  fake_ps(1).mounted_at = "/its own disk";
  try {
    save();
    FAIL() << "it was saved";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr(str(kSecond, "/ps1-0/rows")));
    EXPECT_THAT(error.what(), HasSubstr("mount a shared file system"));
  }
  EXPECT_FALSE(left_over(kSecond));
  EXPECT_EQ(sources.newest->folder, kFirst);
  fake_ps(1).mounted_at = "";
  EXPECT_EQ(save(), kSecond);
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

}  // namespace
}  // namespace cairn
