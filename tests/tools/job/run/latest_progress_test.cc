// The part of `cairn status` about a run's training and evaluations.
#include "tools/job/run/latest_progress.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/tools/temp_folder.h"
#include "tools/job/run/run_reporter.h"

namespace cairn::tools {
namespace {

Json of_history(const std::string& lines) {
  const TempFolder folder;
  folder.write("history.jsonl", lines);
  return latest_progress(folder.path());
}

TEST(LatestProgress, IsTheLastStepAndTheLastEvaluationOfTheHistory) {
  const Json told = of_history(
      "{\"kind\":\"start\",\"step\":0}\n"
      "{\"kind\":\"step\",\"step\":10,\"loss\":0.5,\"examples_per_s\":100.0}\n"
      "{\"kind\":\"evaluation\",\"step\":10,\"data\":\"test\",\"metrics\":{\"auc\":0.75}}\n"
      "{\"kind\":\"step\",\"step\":20,\"loss\":0.25,\"examples_per_s\":200.0}\n{\"kind\":\"ste");
  EXPECT_EQ(json_text(told),
            "{\"training\":{\"step\":20,\"loss\":0.25,\"examples_per_s\":200.0},\"evaluation\":{"
            "\"step\":10,\"data\":\"test\",\"metrics\":{\"auc\":0.75}}}");
  EXPECT_EQ(latest_text(told),
            "training: step 20, loss 0.2500, 200 examples/s\n"
            "evaluation: step 10, test data:  auc 0.7500\n");
}

TEST(LatestProgress, WhatWasToldAboveTheStepFromWhichARunGoesOnDoesNotCount) {
  const Json told = of_history(
      "{\"kind\":\"step\",\"step\":10,\"loss\":0.5}\n"
      "{\"kind\":\"evaluation\",\"step\":30,\"data\":\"test\",\"metrics\":{\"auc\":0.75}}\n"
      "{\"kind\":\"start\",\"step\":20}\n");
  EXPECT_EQ(latest_text(told), "training: step 10, loss 0.5000\n");
}

TEST(LatestProgress, IsEmptyWithoutAHistory) {
  EXPECT_TRUE(latest_progress("").empty());
  EXPECT_TRUE(latest_progress(TempFolder().path()).empty());
  EXPECT_EQ(latest_text(Json::object()), "");
}

TEST(LatestProgress, WhatAProgramOfAnotherFormSaysIsLeftOut) {
  EXPECT_EQ(latest_text(parse_json("[1]", "it")), "");
  EXPECT_EQ(latest_text(parse_json(R"({"training": 3, "evaluation": "good"})", "it")), "");
  EXPECT_EQ(latest_text(parse_json(R"({"training": {"step": "x", "loss": null}})", "it")),
            "training: step 0\n");
}

class Failing final : public RunListener {
 public:
  void step(const Step&) override { throw ResourceExhaustedError("the disk is full"); }
  void evaluation(std::int64_t, const std::string&, const Metrics&) override {}
};

class Counting final : public RunListener {
 public:
  explicit Counting(int& steps) : steps_(steps) {}
  void step(const Step& step) override { steps_ += step.examples_per_s == 50 ? 1 : 100; }
  void evaluation(std::int64_t, const std::string&, const Metrics&) override {}

 private:
  int& steps_;
};

TEST(RunReporter, LeavesOutWhoFailsAndSaysSoOnce) {
  std::string said;
  RunReporter reporter([&](const std::string& text) { said += text + "\n"; });
  int steps = 0;
  reporter.add("the file", std::make_unique<Failing>());
  reporter.add("the count", std::make_unique<Counting>(steps));
  reporter.step({.step = 1, .seconds = 1, .examples = 50});
  reporter.step({.step = 2, .seconds = 2, .examples = 100});
  EXPECT_EQ(said, "warning: the file is not kept any more: the disk is full\n");
  EXPECT_EQ(steps, 2);
}

}  // namespace
}  // namespace cairn::tools
