#include "tools/job/train/run_curves.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"
#include "model/writers/run_history.h"
#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "what: step=value ...", a text per curve.
std::vector<std::string> texts_of(const RunCurves& run) {
  std::vector<std::string> texts;
  for (const RunCurve& curve : run.curves) {
    std::string text = curve.what + ":";
    for (const RunCurve::Point& point : curve.points)
      text += std::isnan(point.value) ? str(" ", point.step, "=?")
                                      : str(" ", point.step, "=", point.value);
    texts.push_back(text);
  }
  return texts;
}

const std::string kStep1 =
    R"({"kind":"step","step":1,"seconds":1,"loss":0.5,"examples_per_s":100,"staleness":null})"
    "\n";
const std::string kStep2 =
    R"({"kind":"step","step":2,"seconds":2,"loss":0.25,"examples_per_s":200,"staleness":null})"
    "\n";
const std::string kJudged = R"({"kind":"evaluation","step":2,"data":"test","metrics":{"auc":0.75}})"
                            "\n";

TEST(RunCurves, WhatARunKeptIsRead) {
  const TempFolder folder;
  RunHistory history(folder.path());
  history.start(0);
  history.step({.step = 4, .seconds = 2, .loss = 0.5, .examples = 100, .staleness = 1.5});
  history.evaluation(4, "test", {{"auc", 0.75}, {"logloss", 0.5}});
  const RunCurves run = read_curves(folder.path());
  EXPECT_THAT(run.left_out, IsEmpty());
  EXPECT_THAT(texts_of(run), ElementsAre("loss: 4=0.5", "examples/s: 4=50", "staleness: 4=1.5",
                                         "auc, test data: 4=0.75", "logloss, test data: 4=0.5"));
  EXPECT_EQ(run.name, folder.path().substr(folder.path().rfind('/') + 1));
  EXPECT_EQ(read_curves(folder.path() + "/history.jsonl").name, run.name);
}

TEST(RunCurves, AThingThatIsNeverKnownHasNoCurveAndAGapStays) {
  const std::string gap =
      R"({"kind":"step","step":3,"seconds":3,"loss":null,"examples_per_s":5,"staleness":null})";
  EXPECT_THAT(texts_of(curves_of(kStep1 + gap, "h")),
              ElementsAre("loss: 1=0.5 3=?", "examples/s: 1=100 3=5"));
}

TEST(RunCurves, WhatWasToldAboveTheStepOfARestartIsForgotten) {
  const std::string again = "\n{\"kind\":\"start\",\"step\":1}\n";
  EXPECT_THAT(texts_of(curves_of(kStep1 + kStep2 + kJudged + again, "h")),
              ElementsAre("loss: 1=0.5", "examples/s: 1=100"));
}

TEST(RunCurves, ADamagedLineIsToldAndLeftOutAsAWhole) {
  const std::string odd =
      R"({"kind":"step","step":9,"seconds":1,"loss":1,"examples_per_s":"fast","staleness":null})"
      "\n[1]\n";
  const RunCurves run = curves_of(kStep1 + "{\"kind\":\"st\n" + odd + kStep2, "runs/a/h");
  EXPECT_THAT(texts_of(run), ElementsAre("loss: 1=0.5 2=0.25", "examples/s: 1=100 2=200"));
  EXPECT_THAT(run.left_out, ElementsAre(HasSubstr("runs/a/h:2: left out: "),
                                        HasSubstr("runs/a/h:3: left out: \"examples_per_s\""),
                                        HasSubstr("runs/a/h:4: left out: it is not an object")));
}

TEST(RunCurves, ALineOfAKindThatIsNotKnownIsPassedOver) {
  const RunCurves run = curves_of("{\"kind\":\"weather\"}\n" + kStep1, "h");
  EXPECT_THAT(run.left_out, IsEmpty());
  EXPECT_EQ(run.curves.size(), 2u);
}

TEST(RunCurves, AFolderWithoutAHistoryIsNamed) {
  const TempFolder folder;
  try {
    read_curves(folder.path());
    ADD_FAILURE() << "it was read";
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder.path() + "/history.jsonl"));
  }
}

}  // namespace
}  // namespace cairn::tools
