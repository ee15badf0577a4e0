// `cairn ckpt` on checkpoints whose rows lie in local folders of the ps.
#include <gmock/gmock.h>

#include <filesystem>

#include "coordinator/checkpoint/local_rows.h"
#include "storage/database_place.h"
#include "tests/tools/ckpt/checkpoint_fixture.h"

namespace cairn::tools::ckpt {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct CkptLocalRows : CkptTest {
  // Moves the databases that a checkpoint wrote itself to where a ps would have written them, and
  // names them there; those of its base are where the base's are.
  std::string make_local(const std::string& checkpoint, std::uint64_t attempt) {
    storage::Manifest manifest = storage::read_manifest(system_disk(), checkpoint);
    for (auto& database : manifest.databases) {
      const std::size_t dot = database.name.find('.');
      const bool own = dot == std::string::npos;
      const std::string name = own ? database.name : database.name.substr(dot + 1);
      const int ps = name.starts_with("ps-1") ? 1 : 0;
      const std::string rows =
          storage::rows_folder_name(manifest.session, own ? attempt : attempt - 1);
      const std::string place = file(str("own/ps-", ps, "/", rows, "/", name));
      if (own) {
        std::filesystem::create_directories(folder_of(place));
        std::filesystem::rename(checkpoint + "/" + database.name, place);
      }
      for (auto& one : database.files) one.name = place + one.name.substr(one.name.find('/'));
      database.name = place;
      database.task = str("/job:ps/task:", ps);
    }
    storage::commit(system_disk(), checkpoint, manifest);
    return checkpoint;
  }
  // A full one and its delta.
  void make_both() {
    const std::string full = make(), delta = file("checkpoints/ckpt-00000002");
    make_delta(full, delta);
    ordinary = file("ordinary");
    std::filesystem::copy(file("checkpoints"), ordinary, std::filesystem::copy_options::recursive);
    make_local(full, 1);
    make_local(delta, 2);
    for (const std::string& path : {full, delta})
      for (const std::string& name : system_disk().list(path))
        if (name != "MANIFEST.json") system_disk().remove_tree(path + "/" + name);
  }
  void move_ps_1() { std::filesystem::rename(file("own/ps-1"), file("moved")); }
  std::string ordinary;
};

TEST_F(CkptLocalRows, AreReadWhereTheManifestSays) {
  make_both();
  EXPECT_EQ(ckpt({"verify", file("checkpoints")}), 0) << output();
  EXPECT_EQ(ckpt({"diff", file("checkpoints"), ordinary}), 0) << output();
  EXPECT_EQ(ckpt({"get", file("checkpoints"), "dense/kernel", "5"}), 0) << output();
  EXPECT_EQ(ckpt({"show", file("checkpoints")}), 0);
  EXPECT_THAT(output(), AllOf(HasSubstr(file("own/ps-1/rows-")),
                              HasSubstr("on the machine of /job:ps/task:1")));
  EXPECT_EQ(ckpt({"ls", file("checkpoints")}), 0);
  EXPECT_THAT(output(), HasSubstr("rows in local folders of 2 ps"));
  EXPECT_EQ(ckpt({"consolidate", file("checkpoints")}), 2);
  EXPECT_THAT(output(), HasSubstr("cairn ckpt copy"));
}

TEST_F(CkptLocalRows, CopyGathersThemInOneFolder) {
  make_both();
  move_ps_1();
  const std::string there = "--database-folder=ps:1=" + file("moved");
  EXPECT_EQ(ckpt({"copy", file("checkpoints"), file("gathered"), there, "--json"}), 0) << output();
  EXPECT_GT(json()[1]["files_linked"].get<int>(), 0) << "what the delta shares with its base";
  std::filesystem::remove_all(file("moved"));
  std::filesystem::remove_all(file("own"));
  EXPECT_EQ(ckpt({"verify", file("gathered")}), 0) << output();
  EXPECT_EQ(ckpt({"diff", file("gathered"), ordinary}), 0) << output();
  EXPECT_THAT(system_disk().read(file("gathered/ckpt-00000002/MANIFEST.json")),
              AllOf(HasSubstr("\"format\": 2"), Not(HasSubstr("/job:ps"))));
}

TEST_F(CkptLocalRows, ThatAreNotHereAreNamedWithTheirTaskAndACure) {
  make_both();
  move_ps_1();
  const auto named = AllOf(HasSubstr(file("own/ps-1/rows-")), HasSubstr("/job:ps/task:1"),
                           HasSubstr("--database-folder ps:1=FOLDER"));
  EXPECT_EQ(ckpt({"verify", file("checkpoints")}), 1);
  EXPECT_THAT(output(), AllOf(named, HasSubstr("NOT WHOLE HERE"), Not(HasSubstr("DAMAGED"))));
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"copy", file("checkpoints"), file("gathered")},
           {"export", file("checkpoints"), file("a.npz")},
           {"stats", file("checkpoints")},
           {"reshard", file("checkpoints"), "--shards", "1", "--out", file("one")},
           {"repair", file("checkpoints"), "--out", file("one")}}) {
    EXPECT_EQ(ckpt(command), 1) << command[0];
    EXPECT_THAT(output(), named) << command[0];
  }
  EXPECT_FALSE(system_disk().exists(file("gathered/ckpt-00000001/MANIFEST.json")));
  const std::string there = "--database-folder=ps:1=" + file("moved");
  EXPECT_EQ(ckpt({"verify", file("checkpoints"), there}), 0) << output();
  EXPECT_EQ(ckpt({"reshard", file("checkpoints"), "--shards", "1", "--out", file("one"), there}), 0)
      << output();
  EXPECT_EQ(ckpt({"diff", file("one"), ordinary}), 0) << output();
}

TEST_F(CkptLocalRows, RepairPutsWhatIsSoundOfThemIntoAnOrdinaryCheckpoint) {
  make_both();
  const auto manifest = storage::read_manifest(system_disk(), file("checkpoints/ckpt-00000001"));
  for (const auto& one : manifest.databases[1].files)
    if (one.name.ends_with(".sst")) system_disk().write_atomically(one.name, "no rows");
  EXPECT_EQ(ckpt({"verify", file("checkpoints/ckpt-00000001")}), 1);
  EXPECT_THAT(output(), HasSubstr("DAMAGED"));
  EXPECT_EQ(ckpt({"repair", file("checkpoints/ckpt-00000001"), "--out", file("sound")}), 1);
  EXPECT_THAT(output(), HasSubstr("rows saved, 0 lost"));
  EXPECT_EQ(ckpt({"verify", file("sound")}), 0) << output();
}

TEST_F(CkptLocalRows, PruneRemovesThoseThatItSeesAndLeavesTheOthersToTheNextSave) {
  make_both();
  const std::string third = make({.id = 3});
  make_local(third, 3);
  std::vector<LocalRows> all;
  for (const int attempt : {1, 2, 3})
    for (const int ps : {0, 1})
      all.push_back({str("/job:ps/task:", ps),
                     file(str("own/ps-", ps, "/", storage::rows_folder_name(5, attempt)))});
  note_local_rows(system_disk(), file("checkpoints"), all);
  move_ps_1();
  EXPECT_EQ(ckpt({"prune", file("checkpoints"), "--keep-last", "2"}), 0) << output();
  EXPECT_TRUE(system_disk().exists(all[0].path)) << "the second one goes back to it";
  EXPECT_EQ(ckpt({"prune", file("checkpoints"), "--keep-last", "1"}), 0) << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("removed " + all[0].path),
                              HasSubstr("left " + all[1].path + " on the machine of")));
  EXPECT_FALSE(system_disk().exists(all[0].path) || system_disk().exists(all[2].path));
  EXPECT_TRUE(system_disk().exists(all[4].path));
  EXPECT_EQ(unnamed_local_rows(system_disk(), file("checkpoints")),
            (std::vector<LocalRows>{all[1], all[3]}));
  EXPECT_EQ(ckpt({"prune", file("checkpoints"), "--unfinished",
                  "--database-folder=ps:1=" + file("moved")}),
            0)
      << output();
  EXPECT_EQ(system_disk().list(file("moved")).size(), 1u);
}

}  // namespace
}  // namespace cairn::tools::ckpt
