#include "model/run_history.h"

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
  ManualClock clock_;
};

TEST_F(RunHistoryTest, EachLineIsAnObject) {
  RunHistory history(temp_.path(), clock_);
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
  RunHistory history(temp_.path(), clock_);
  history.step({.step = 1, .seconds = 1, .examples = 100});
  history.step({.step = 2, .seconds = 3, .examples = 600});
  EXPECT_THAT(text(), ::testing::HasSubstr("\"examples_per_s\":250.0"));
}

TEST_F(RunHistoryTest, ARateIsNotTakenOverAMoment) {
  RunHistory history(temp_.path(), clock_);
  history.step({.step = 1, .seconds = 1, .examples = 100});
  history.step({.step = 2, .seconds = 2, .examples = 300});
  history.step({.step = 3, .seconds = 2.001, .examples = 300});
  EXPECT_THAT(text(), ::testing::HasSubstr("\"examples_per_s\":199.8"));
}

TEST_F(RunHistoryTest, WhatIsNotKnownOrNotFiniteIsNull) {
  RunHistory history(temp_.path(), clock_);
  history.step({.step = 1, .seconds = 0, .loss = std::nan(""), .examples = 0});
  EXPECT_THAT(text(),
              ::testing::HasSubstr("\"loss\":null,\"examples_per_s\":null,\"staleness\":null"));
}

TEST_F(RunHistoryTest, IsDueOftenAtFirstAndThenOncePerSecond) {
  RunHistory history(temp_.path(), clock_);
  EXPECT_FALSE(history.due());
  clock_.advance(milliseconds(100));
  EXPECT_TRUE(history.due());
  history.step({});
  EXPECT_FALSE(history.due());
  clock_.advance(seconds(10));
  history.step({});
  clock_.advance(milliseconds(999));
  EXPECT_FALSE(history.due());
  clock_.advance(milliseconds(1));
  EXPECT_TRUE(history.due());
}

TEST_F(RunHistoryTest, GoesOnBehindALineThatWasTorn) {
  temp_.write("history.jsonl", "{\"kind\":\"st");
  RunHistory(temp_.path(), clock_).start(3);
  EXPECT_EQ(text(), "{\"kind\":\"st\n{\"kind\":\"start\",\"step\":3}\n");
}

TEST_F(RunHistoryTest, AFolderThatIsNotThereIsTold) {
  EXPECT_THROW(RunHistory(temp_.path() + "/none", clock_), NotFoundError);
}

}  // namespace
}  // namespace cairn
