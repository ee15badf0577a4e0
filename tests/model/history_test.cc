#include "model/history.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "model/logs.h"
#include "model/training_place.h"

namespace cairn {
namespace {

TEST(History, HasNoNumberWhereAnEpochHasNone) {
  History history;
  history.add(0, {{"loss", 2}});
  history.add(1, {{"loss", 1}, {"val_loss", 3}});
  EXPECT_EQ(history["loss"], (std::vector<double>{2, 1}));
  EXPECT_TRUE(std::isnan(history["val_loss"][0]));
  EXPECT_EQ(history["val_loss"][1], 3);
}

TEST(History, NamesTheNearestOfWhatItDoesNotHave) {
  History history;
  history.add(0, {{"val_loss", 2}});
  try {
    history["val_los"];
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("\"val_loss\""), std::string::npos);
  }
}

TEST(Logs, RefuseANameThatTheyDoNotHave) {
  Logs logs{{"val_auc", 0.5}};
  logs.set("mine", 2);
  EXPECT_EQ(logs["val_auc"], 0.5);
  EXPECT_EQ(logs["mine"], 2);
  try {
    logs["val_acu"];
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"val_auc\"?"), std::string::npos);
  }
  EXPECT_FALSE(logs.contains("val_acu"));
}

}  // namespace
}  // namespace cairn
