// Checkpoints whose rows lie in a local folder of each ps, which no other machine sees.
#include "coordinator/checkpoint/local_rows.h"

#include "storage/database_place.h"
#include "tests/coordinator/engine/checkpoint_fixture.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

struct LocalRowsOfFakePs : Checkpoints {
  LocalRowsOfFakePs() {
    local_folder = "/l";
    for (const std::size_t i : {0u, 1u}) fake_ps(i).mounted_at = str("/machine-", i);
  }
  std::string rows(std::uint64_t attempt) const {
    return storage::rows_folder_name(session.number, attempt);
  }
  std::vector<std::string> rows_on(std::size_t i) {
    return ground.disk.list(str("/machine-", i, "/l/ps-", i));
  }
};

TEST_F(LocalRowsOfFakePs, AreNamedInTheManifestWithWhoWroteThemAndWhatTheyHold) {
  const auto made = manifest(save());
  ASSERT_THAT(made.databases, SizeIs(2));
  const storage::DatabaseInfo& second = made.databases[1];
  EXPECT_EQ(second.name, str("/l/ps-1/", rows(1), "/ps1-0"));
  EXPECT_EQ(second.files.at(0).name, second.name + "/rows");
  EXPECT_EQ(second.task, "/job:ps/task:1");
  EXPECT_THAT(second.parts, ElementsAre(storage::DatabasePart{"w", {0, 1}}));
  EXPECT_THAT(rows_on(0), ElementsAre(rows(1)));
  EXPECT_EQ(ground.disk.list(kFirst), std::vector<std::string>{storage::kManifestFile});
}

TEST_F(LocalRowsOfFakePs, OfADeltasBaseAreNamedWhereTheyAre) {
  full_every = 2;
  save();
  const auto delta = manifest(save());
  std::vector<std::string> names;
  for (const auto& database : delta.databases) names.push_back(database.name);
  EXPECT_THAT(names,
              ElementsAre(str("/l/ps-0/", rows(1), "/ps0-0"), str("/l/ps-1/", rows(1), "/ps1-0"),
                          str("/l/ps-0/", rows(2), "/ps0-0"), str("/l/ps-1/", rows(2), "/ps1-0")));
}

TEST_F(LocalRowsOfFakePs, OfAnAttemptThatFailedGo) {
  save();
  fake_ps(1).script.fail<DataLossError>("save", "cannot write");
  EXPECT_THROW(save(), DataLossError);
  EXPECT_FALSE(left_over(kSecond));
  for (const std::size_t i : {0u, 1u}) EXPECT_THAT(rows_on(i), ElementsAre(rows(1)));
  EXPECT_THAT(unnamed_local_rows(ground.disk, "/c"), IsEmpty());
}

TEST_F(LocalRowsOfFakePs, ThatAPsCouldNotRemoveGoAtItsNextSave) {
  keep_last = 1;
  save();
  fake_ps(1).refuses_to_remove = true;
  save();
  EXPECT_THAT(rows_on(0), ElementsAre(rows(2)));
  EXPECT_THAT(rows_on(1), ElementsAre(rows(1), rows(2)));
  fake_ps(1).refuses_to_remove = false;
  save();
  EXPECT_THAT(rows_on(1), ElementsAre(rows(3)));
  EXPECT_THAT(unnamed_local_rows(ground.disk, "/c"), IsEmpty());
}

TEST_F(LocalRowsOfFakePs, StayWhileAManifestThatMightNameThemCannotBeRead) {
  keep_last = 1;
  save();
  ground.disk.write_atomically("/c/ckpt-00000001/MANIFEST.json", "no manifest");
  save();
  EXPECT_THAT(rows_on(0), ElementsAre(rows(1), rows(2)));
}

TEST_F(LocalRowsOfFakePs, AreAskedOfThePsThatNeedsThemAndOfNoOther) {
  save();
  restore(kFirst);
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_THAT(fake_ps(i).calls_of("find"), SizeIs(1));
    EXPECT_THAT(fake_ps(i).calls_of("restore"), SizeIs(1));
  }
}

TEST_F(LocalRowsOfFakePs, ThatAreMissingEndARestoreBeforeAnyPsBeginsIt) {
  save();
  step();
  ground.disk.remove_tree("/machine-1");
  auto restored = begin_restore(kFirst);
  EXPECT_THAT([&] { wait(restored); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("/job:ps/task:1 wrote rows of the checkpoint /c/ckpt-00000001"),
                        HasSubstr(str("/l/ps-1/", rows(1), "/ps1-0")), HasSubstr("start it on"),
                        HasSubstr("cairn ckpt copy"))));
  for (const std::size_t i : {0u, 1u}) EXPECT_THAT(fake_ps(i).calls_of("restore"), IsEmpty());
  EXPECT_EQ(progress.global_step(), 1);
}

TEST_F(LocalRowsOfFakePs, OfALostPsAreFoundAgainByTheNextOne) {
  save();
  lose(1);
  restart(1);
  EXPECT_TRUE(ps(1).ready);
  EXPECT_THAT(fake_ps(1).calls_of("restore"), SizeIs(1));
  EXPECT_THAT(fake_ps(1).calls_of("find"), SizeIs(1));
}

TEST_F(LocalRowsOfFakePs, NeedAnAbsoluteFolderAndManifestsOnAFileSystem) {
  for (const char* bad : {"l", "/l/", "/a/../l", "s3://bucket/l"}) {
    local_folder = bad;
    EXPECT_THROW(save(), InvalidArgumentError) << bad;
  }
  local_folder = "/l";
  ground.disk.set_links(false);
  EXPECT_THAT([&] { save(); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("in a bucket")));
}

}  // namespace
}  // namespace cairn
