// When a ps may be struck, by what the coordinator says of the backups.
#include "tests/chaos/ps_harm.h"

#include <gtest/gtest.h>

namespace cairn::chaos {
namespace {

Json ps(bool ready, int in_sync, int backups) {
  return {{"ready", ready}, {"in_sync", in_sync}, {"backups", backups}};
}

TEST(BackupsInSync, AreThoseOfEveryPs) {
  EXPECT_TRUE(backups_in_sync(Json{{"ps", {ps(true, 2, 2), ps(true, 2, 2)}}}));
  EXPECT_FALSE(backups_in_sync(Json{{"ps", {ps(true, 2, 2), ps(true, 1, 2)}}}));
  EXPECT_FALSE(backups_in_sync(Json{{"ps", {ps(true, 2, 2), ps(false, 2, 2)}}}));
}

TEST(BackupsInSync, AreNotWhereTheStatusTellsOfNone) {
  EXPECT_FALSE(backups_in_sync(Json::object()));
  EXPECT_FALSE(backups_in_sync(Json{{"ps", Json::array()}}));
  EXPECT_FALSE(backups_in_sync(Json{{"ps", {ps(true, 0, 0)}}}));
  EXPECT_FALSE(backups_in_sync(Json{{"ps", {{{"ready", true}}}}}));
}

}  // namespace
}  // namespace cairn::chaos
