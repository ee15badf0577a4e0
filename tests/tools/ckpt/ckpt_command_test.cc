#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "storage/folder_lock.h"
#include "tests/tools/ckpt/checkpoint_fixture.h"

namespace cairn::tools::ckpt {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSubcommands[] = {"ls",    "show",    "verify",      "get",    "stats",
                                        "diff",  "merge",   "consolidate", "prune",  "copy",
                                        "watch", "reshard", "export",      "import", "repair"};

TEST_F(CkptTest, EverySubcommandHasHelpAndRefusesAnUnknownFlagWithTwo) {
  for (const char* name : kSubcommands) {
    EXPECT_EQ(ckpt({name, "--help"}), 0) << name;
    EXPECT_THAT(output(), HasSubstr("--json")) << name;
    EXPECT_EQ(ckpt({name, "--nonsense"}), 2) << name;
  }
}

TEST_F(CkptTest, GetPrintsRowsWithTheirSlotsAndSaysWhichWereNeverTouched) {
  make();
  EXPECT_EQ(ckpt({"get", file("checkpoints"), "hashed", "70", "1000000007", "--json"}), 0);
  const Json rows = json()["rows"];
  EXPECT_EQ(rows[0]["parameters"], Json({70.0, 70.25, 70.5}));
  EXPECT_EQ(rows[0]["slots"]["accumulator"], Json({700.0, 700.0, 700.0}));
  EXPECT_EQ(rows[1]["row"], 1'000'000'007);
  EXPECT_EQ(ckpt({"get", file("checkpoints"), "hashed", "71"}), 1);
  EXPECT_THAT(output(), HasSubstr("never touched"));
}

TEST_F(CkptTest, GetRefusesNamesAndRowsThatThereAreNotAsWrongUse) {
  make();
  EXPECT_EQ(ckpt({"get", file("checkpoints"), "dense/kernle", "0"}), 2);
  EXPECT_THAT(output(), HasSubstr("did you mean \"dense/kernel\"?"));
  EXPECT_EQ(ckpt({"get", file("checkpoints"), "dense/kernel", "40"}), 2);
  EXPECT_THAT(output(), HasSubstr("rows 0 to 39"));
}

TEST_F(CkptTest, StatsCountsWhatIsThereBySlot) {
  make();
  EXPECT_EQ(ckpt({"stats", file("checkpoints"), "--json"}), 0) << output();
  const Json dense = json()["variables"][0];
  EXPECT_EQ(dense["rows_saved"], 40);
  EXPECT_EQ(dense["parameters"]["min"], 0.0);
  EXPECT_EQ(dense["parameters"]["max"], 39.5);
  EXPECT_EQ(dense["parameters"]["mean"], 19.75);
  EXPECT_EQ(dense["slots"]["accumulator"]["max"], 390.0);
  EXPECT_EQ(dense["parameters"]["zeros"], 1);
  std::uint64_t counted = 0;
  for (const Json& bucket : dense["parameters"]["histogram"])
    counted += bucket["count"].get<std::uint64_t>();
  EXPECT_EQ(counted, 120u);
}

TEST_F(CkptTest, StatsEndsWithOneWhereSomethingIsNotFiniteAndCountsIt) {
  make({.change = [](const std::string& name, std::int64_t row, float* values) {
    if (name == "hashed" && row == 70) values[1] = std::numeric_limits<float>::quiet_NaN();
    if (name == "hashed" && row == 3) values[4] = -std::numeric_limits<float>::infinity();
  }});
  EXPECT_EQ(ckpt({"stats", file("checkpoints"), "--json"}), 1);
  const Json hashed = json()["variables"][1];
  EXPECT_EQ(hashed["parameters"]["nan"], 1);
  EXPECT_EQ(hashed["parameters"]["inf"], 0);
  EXPECT_EQ(hashed["slots"]["accumulator"]["inf"], 1);
  EXPECT_EQ(ckpt({"stats", file("checkpoints"), "dense/kernel"}), 0) << output();
}

TEST_F(CkptTest, DiffFindsRowsThatDifferAndThoseOfOneSideAndTheGreatestDifference) {
  const std::string a = make();
  const std::string b =
      make({.id = 2,
            .ids = {3, 71, 1'000'000'007},
            .change = [](const std::string& name, std::int64_t row, float* values) {
              if (name == "dense/kernel" && row == 17) values[2] += 0.5f;
              if (name == "dense/kernel" && row == 30) values[5] -= 2;
            }});
  EXPECT_EQ(ckpt({"diff", a, b, "--json"}), 1);
  const Json dense = json()["variables"][0], hashed = json()["variables"][1];
  EXPECT_EQ(dense["differ"], 2);
  EXPECT_EQ(dense["equal"], 38);
  EXPECT_EQ(dense["greatest"]["parameters"], Json({{"difference", 0.5}, {"row", 17}}));
  EXPECT_EQ(dense["greatest"]["accumulator"], Json({{"difference", 2.0}, {"row", 30}}));
  EXPECT_EQ(hashed["only_a"], 1);
  EXPECT_EQ(hashed["only_b"], 1);
  EXPECT_EQ(ckpt({"diff", a, a}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("all rows are equal"));
}

// ---- what writes ----

TEST_F(CkptTest, ReshardAndMergeKeepEveryRowAndVerifyClean) {
  const std::string source = make();
  EXPECT_EQ(ckpt({"reshard", source, "--shards", "5", "--out", file("five"), "--json"}), 0);
  EXPECT_EQ(json()["databases"], 5);
  EXPECT_EQ(json()["rows"], 43);
  EXPECT_EQ(ckpt({"merge", file("five"), "--out", file("one")}), 0) << output();
  for (const char* made : {"five", "one"}) {
    EXPECT_EQ(ckpt({"verify", file(made)}), 0) << output();
    EXPECT_EQ(ckpt({"diff", source, file(made)}), 0) << output();
  }
}

TEST_F(CkptTest, ReshardWithoutAPlaceMakesTheNextCheckpointOfTheNewestAlone) {
  const std::string first = make(), second = make({.id = 2});
  EXPECT_EQ(ckpt({"reshard", first, "--shards", "2"}), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("is not the newest"), HasSubstr("--out")));
  EXPECT_EQ(ckpt({"reshard", second, "--shards", "2"}), 0) << output();
  EXPECT_EQ(ckpt({"diff", second, file("checkpoints/ckpt-00000003")}), 0) << output();
  EXPECT_EQ(ckpt({"reshard", second, "--shards", "2", "--out", first}), 1);
  EXPECT_THAT(output(), HasSubstr("there is something in"));
}

TEST_F(CkptTest, ConsolidateMakesADeltaFullInItsPlaceWithTheSameRows) {
  const std::string base = make();
  const std::string delta = make_delta(base, file("checkpoints/ckpt-00000002"));
  EXPECT_EQ(ckpt({"merge", delta, "--out", file("before")}), 0) << output();
  EXPECT_EQ(ckpt({"consolidate", delta}), 0) << output();
  EXPECT_EQ(ckpt({"diff", delta, file("before")}), 0) << output();
  EXPECT_EQ(ckpt({"get", delta, "dense/kernel", "5", "--json"}), 0);
  EXPECT_EQ(json()["rows"][0]["parameters"][0], 10.0);
  EXPECT_EQ(storage::read_manifest(system_disk(), delta).base, "");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(delta)) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(entry.hard_link_count(), 1u) << entry.path();
  }
  EXPECT_EQ(ckpt({"verify", file("checkpoints")}), 0) << output();
}

TEST_F(CkptTest, CopyGoesOnWhereItStoppedAndSharesWhatDeltasShare) {
  const std::string base = make();
  make_delta(base, file("checkpoints/ckpt-00000002"));
  EXPECT_EQ(ckpt({"copy", file("checkpoints"), file("there"), "--json"}), 0) << output();
  EXPECT_GT(json()[1]["files_linked"].get<int>(), 0);
  std::filesystem::remove(file("there/ckpt-00000001/MANIFEST.json"));
  const std::string lost = file("there/ckpt-00000001/ps-0-shard-0/CURRENT");
  std::filesystem::remove(lost);
  EXPECT_EQ(ckpt({"copy", base, file("there"), "--json"}), 0) << output();
  EXPECT_EQ(json()[0]["files_copied"], 1);
  EXPECT_EQ(ckpt({"verify", file("there")}), 0) << output();
  EXPECT_EQ(ckpt({"diff", file("checkpoints"), file("there")}), 0) << output();
}

TEST_F(CkptTest, CopyDoesNotCommitACheckpointOfWhichAFileIsDamaged) {
  const std::string source = make();
  const std::string current = source + "/ps-1-shard-0/CURRENT";
  folder_.write("checkpoints/ckpt-00000001/ps-1-shard-0/CURRENT",
                "x" + system_disk().read(current));
  EXPECT_EQ(ckpt({"copy", source, file("there")}), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr(current), HasSubstr("is damaged")));
  EXPECT_FALSE(system_disk().exists(file("there/ckpt-00000001/MANIFEST.json")));
}

TEST_F(CkptTest, CopyRefusesToReplaceAnotherCheckpointOfThatNumber) {
  const std::string source = make();
  make({.dense_rows = 3}, "there");
  EXPECT_EQ(ckpt({"copy", source, file("there")}), 1);
  EXPECT_THAT(output(), HasSubstr("is another checkpoint than"));
}

// ---- what keeps ----

bool is_there(const std::string& checkpoint) {
  return system_disk().exists(checkpoint + "/MANIFEST.json");
}

TEST_F(CkptTest, PruneKeepsTheNewestWhateverIsAskedAndADryRunRemovesNothing) {
  std::vector<std::string> all = {""};
  for (std::uint64_t id = 1; id <= 6; ++id) all.push_back(make({.id = id}));
  EXPECT_EQ(ckpt({"prune", file("checkpoints"), "--keep-every", "4", "--dry-run"}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("would remove " + all[5]));
  for (std::size_t id = 1; id <= 6; ++id) EXPECT_TRUE(is_there(all[id]));
  EXPECT_EQ(ckpt({"prune", file("checkpoints"), "--keep-every", "4", "--json"}), 0);
  EXPECT_EQ(json()["removed"].size(), 4u);
  EXPECT_TRUE(is_there(all[4]) && is_there(all[6]));
  EXPECT_EQ(ckpt({"prune", file("checkpoints"), "--keep-last", "1"}), 0);
  EXPECT_FALSE(is_there(all[4]));
  EXPECT_TRUE(is_there(all[6]));
  EXPECT_EQ(ckpt({"prune", file("checkpoints")}), 2);
}

TEST_F(CkptTest, PruneRemovesNothingWhileATrainingHoldsTheFolderAndHasNotSavedYet) {
  const std::string first = make();
  make({.id = 2});
  const auto training =
      storage::lock_folder(system_disk(), file("checkpoints"), system_clock(), Duration::zero());
  EXPECT_EQ(ckpt({"prune", file("checkpoints"), "--keep-last", "1"}), 1);
  EXPECT_THAT(output(), HasSubstr("has not saved there yet"));
  EXPECT_TRUE(is_there(first));
}

TEST_F(CkptTest, PruneKeepsTheNewestOfEachSessionAndTheOriginOfARunningTraining) {
  const auto training =
      storage::lock_folder(system_disk(), file("checkpoints"), system_clock(), Duration::zero());
  const std::int64_t later = system_clock().wall_microseconds() + 10'000'000;
  const std::string old = make({.id = 1}), origin = make({.id = 2}), other = make({.id = 3}),
                    middle = make({.id = 4, .session = 6, .ancestors = {{5, 2}}}),
                    newest =
                        make({.id = 5, .session = 6, .ancestors = {{5, 2}}, .saved_at_us = later});
  EXPECT_EQ(ckpt({"prune", file("checkpoints"), "--keep-last", "1"}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("what the running training was resumed from"));
  EXPECT_FALSE(is_there(old) || is_there(middle));
  EXPECT_TRUE(is_there(origin) && is_there(other) && is_there(newest));
}

TEST_F(CkptTest, AFolderThatATrainingHoldsIsNotWrittenTo) {
  const std::string newest = make();
  const auto training =
      storage::lock_folder(system_disk(), file("checkpoints"), system_clock(), Duration::zero());
  EXPECT_EQ(ckpt({"reshard", newest, "--shards", "1"}), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("another run saves"), HasSubstr("--out")));
  EXPECT_EQ(ckpt({"reshard", newest, "--shards", "1", "--out", file("elsewhere")}), 0);
}

TEST_F(CkptTest, WatchPrintsWhatIsCommittedFromThenOnAndEndsWithOneIfTooFewCame) {
  make();
  EXPECT_EQ(ckpt({"watch", file("checkpoints"), "--count", "1", "--timeout", "0.1"}), 1);
  ChildProcess child({.arguments = {CAIRN_PROGRAM, "ckpt", "watch", file("checkpoints"), "--count",
                                    "1", "--timeout", "60", "--json"},
                      .output_file = file("watched")});
  // Whichever of these is made after the first look is the one that is printed.
  std::uint64_t id = 2;
  while (folder_.read("watched").find('}') == std::string::npos && id < 500) make({.id = id++});
  EXPECT_EQ(end_in_time(child, 60'000, folder_.read("watched")).shell_code(), 0);
  EXPECT_GE(parse_json(folder_.read("watched"), "a line")["global_step"].get<int>(), 200);
}

}  // namespace
}  // namespace cairn::tools::ckpt
