#include "model/writers/run_history.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "core/base/error.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RunHistoryTest : public ::testing::Test {
 protected:
  std::string text() const { return temp_.read("history.jsonl"); }

  tools::TempFolder temp_;
};

TEST_F(RunHistoryTest, EachLineIsAnObject) {
  RunHistory history(temp_.path());
  history.start(0);
  history.step({.step = 10, .seconds = 2, .loss = 0.5, .examples = 640, .staleness = 1.5});
  history.evaluation(10, "test", {{"auc", 0.75}});
  EXPECT_EQ(text(),
            "{\"kind\":\"start\",\"step\":0}\n"
            "{\"kind\":\"step\",\"step\":10,\"seconds\":2.0,\"loss\":0.5,\"examples_per_s\":320.0,"
            "\"staleness\":1.5}\n"
            "{\"kind\":\"evaluation\",\"step\":10,\"data\":\"test\",\"metrics\":{\"auc\":0.75}}\n");
}

TEST_F(RunHistoryTest, TheRateIsThatSinceTheLineBefore) {
  RunHistory history(temp_.path());
  history.step({.step = 1, .seconds = 1, .examples = 100});
  history.step({.step = 2, .seconds = 3, .examples = 600});
  EXPECT_THAT(text(), ::testing::HasSubstr("\"examples_per_s\":250.0"));
}

TEST_F(RunHistoryTest, ARateIsNotTakenOverAMoment) {
  RunHistory history(temp_.path());
  history.step({.step = 1, .seconds = 1, .examples = 100});
  history.step({.step = 2, .seconds = 2, .examples = 300});
  history.step({.step = 3, .seconds = 2.001, .examples = 300});
  EXPECT_THAT(text(), ::testing::HasSubstr("\"examples_per_s\":199.8"));
}

TEST_F(RunHistoryTest, WhatIsNotKnownOrNotFiniteIsNull) {
  RunHistory history(temp_.path());
  history.step({.step = 1, .seconds = 0, .loss = std::nan(""), .examples = 0});
  EXPECT_THAT(text(),
              ::testing::HasSubstr("\"loss\":null,\"examples_per_s\":null,\"staleness\":null"));
}

TEST(RunPaceTest, IsDueOftenAtFirstAndThenOncePerSecond) {
  ManualClock clock;
  RunPace pace(clock);
  EXPECT_FALSE(pace.due());
  clock.advance(milliseconds(100));
  EXPECT_TRUE(pace.due());
  pace.told();
  EXPECT_FALSE(pace.due());
  clock.advance(seconds(10));
  pace.told();
  clock.advance(milliseconds(999));
  EXPECT_FALSE(pace.due());
  clock.advance(milliseconds(1));
  EXPECT_TRUE(pace.due());
}

TEST_F(RunHistoryTest, GoesOnBehindALineThatWasTorn) {
  temp_.write("history.jsonl", "{\"kind\":\"st");
  RunHistory(temp_.path()).start(3);
  EXPECT_EQ(text(), "{\"kind\":\"st\n{\"kind\":\"start\",\"step\":3}\n");
}

TEST_F(RunHistoryTest, AFolderThatIsNotThereIsTold) {
  EXPECT_THROW(RunHistory(temp_.path() + "/none"), NotFoundError);
}

}  // namespace
}  // namespace cairn
