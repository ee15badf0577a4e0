#include "tools/launch/kill_plan.h"

#include <gmock/gmock.h>

#include "core/base/error.h"

namespace cairn::tools {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_kill(text);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(KillPlan, AShareOfTheRunIsDueWhenItIsDone) {
  Kill kill = parse_kill("worker:1@40%");

  EXPECT_EQ(kill.str(), "worker 1 at 40%");
  EXPECT_FALSE(kill.due(seconds(1000), 0.39));
  EXPECT_TRUE(kill.due(seconds(0), 0.4));
}

TEST(KillPlan, ATimeIsDueWhenItHasPassed) {
  Kill kill = parse_kill("ps:0@1.5s");

  EXPECT_EQ(kill.str(), "ps 0 after 1.5s");
  EXPECT_FALSE(kill.due(milliseconds(1499), 1.0));
  EXPECT_TRUE(kill.due(milliseconds(1500), 0.0));
}

TEST(KillPlan, WhatCannotBeReadIsRefusedWithTheTextAndTheFormExpected) {
  for (const char* text : {"", "worker", "worker:1", "worker@5s", "worker:x@5s", "worker:1@",
                           "worker:1@5", "worker:1@x%", "worker:1@-5s", "worker:1@101%",
                           "worker:1@nans", "worker:1@infs", "worker:1@5 s", "worker:1 @5s"}) {
    EXPECT_THAT(refusal(text), testing::AllOf(HasSubstr(text), HasSubstr("worker:1@40%"))) << text;
  }
}

TEST(KillPlan, RolesThatTheClusterDoesNotHaveAreRefused) {
  EXPECT_NO_THROW(verify_kills({parse_kill("ps:1@1s"), parse_kill("worker:2@1s")}, 2, 3));
  EXPECT_THROW(verify_kills({parse_kill("ps:2@1s")}, 2, 3), InvalidArgumentError);
  EXPECT_THROW(verify_kills({parse_kill("worker:-1@1s")}, 2, 3), InvalidArgumentError);
  EXPECT_THROW(verify_kills({parse_kill("chief:0@1s")}, 2, 3), InvalidArgumentError);
  EXPECT_NO_THROW(
      verify_kills({parse_kill("data_worker:1@1s"), parse_kill("dispatcher:0@1s")}, 2, 3, 2));
  EXPECT_THROW(verify_kills({parse_kill("data_worker:0@1s")}, 2, 3), InvalidArgumentError);
  EXPECT_THROW(verify_kills({parse_kill("dispatcher:1@1s")}, 2, 3, 2), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::tools
