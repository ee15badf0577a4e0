#include "coordinator/engine/primary_choice.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

// A shard of ps 0, with a backup on ps 1, each in its first process: 10 and 11.
struct Choice : ::testing::Test {
  ShardLayout layout{{0, "", 1, 10}, {{1, "", 2, 11}}, 1, 0};
  std::vector<PlaceNow> places{{{0, "", 1, 10}, true}, {{1, "", 2, 11}, true}};
  bool sound = true, wait = true;

  void lose(std::size_t place) { places[place].there = false; }
  void restart(std::size_t place, std::uint64_t process) {
    places[place] = {places[place].replica, true};
    places[place].replica.process = process;
  }
  // "0", or "1 without rows", or "nobody".
  std::string choice() const {
    const auto chosen = choose_primary(places, layout, sound, wait);
    if (!chosen) return "nobody";
    return std::to_string(chosen->place) + (chosen->has_rows ? "" : " without rows");
  }
};

TEST_F(Choice, ThePrimaryStaysWhileItsProcessIsThere) {
  EXPECT_EQ(choice(), "0");
  lose(1);
  EXPECT_EQ(choice(), "0");
}

TEST_F(Choice, ABackupInSyncTakesOver) {
  lose(0);
  EXPECT_EQ(choice(), "1");
  restart(0, 20);  // another process has none of the rows
  EXPECT_EQ(choice(), "1");
}

TEST_F(Choice, ABackupThatIsNotInSyncDoesNot) {
  layout.backups.clear();
  lose(0);
  EXPECT_EQ(choice(), "nobody");
}

TEST_F(Choice, AnotherProcessOfTheBackupDoesNot) {
  restart(1, 21);
  lose(0);
  EXPECT_EQ(choice(), "nobody");
}

TEST_F(Choice, WhileAProcessThatHasTheRowsMayComeBackNoneIsRebuilt) {
  restart(0, 20);
  lose(1);
  EXPECT_EQ(choice(), "nobody");
  wait = false;
  EXPECT_EQ(choice(), "0 without rows");
}

TEST_F(Choice, WithoutAnyProcessThatHasTheRowsOneIsRebuilt) {
  restart(0, 20);
  restart(1, 21);
  EXPECT_EQ(choice(), "0 without rows");
  lose(0);  // it is not known whether that process has gone, but it had no rows
  places[0].replica.process = 20;
  layout.primary.process = 20;
  layout.backups.clear();
  wait = false;
  EXPECT_EQ(choice(), "1 without rows");
}

TEST_F(Choice, AfterARestoreThatWasCutShortAllAreRebuilt) {
  sound = false;
  EXPECT_EQ(choice(), "0 without rows");
  lose(0);
  EXPECT_EQ(choice(), "1 without rows");
}

TEST_F(Choice, AShardWhoseProcessIsNotKnownWaitsForNobody) {
  layout = {{0, "", 1, 0}, {}, 1, 0};  // as a journal tells of one that was being rebuilt
  lose(1);
  EXPECT_EQ(choice(), "0 without rows");
}

TEST_F(Choice, NobodyAnswersWhereNobodyIs) {
  lose(0);
  lose(1);
  wait = false;
  EXPECT_EQ(choice(), "nobody");
}

}  // namespace
}  // namespace cairn
