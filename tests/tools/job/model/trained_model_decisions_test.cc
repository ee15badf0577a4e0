// Models with a threshold by the command: how it is found, and what they decide by it.
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tests/tools/job_run.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Clicks that grow likelier with x, in a.csv, and a job that is evaluated on all of them.
class Decisions : public ::testing::TestWithParam<const char*> {
 protected:
  Decisions() {
    Draws draws(5);
    std::string rows;
    for (int i = 0; i < 900; ++i) {
      const int random = draws.below(10'000);
      const int x = random % 100;
      clicked_.push_back(random / 100 < x / 2);
      rows += str(x, ",", clicked_.back() ? 1 : 0, "\n");
    }
    run_.folder.write("a.csv", rows);
  }
  void write_job(const std::string& threshold, const std::string& rest = "") {
    run_.folder.write("job.toml",
                      "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nbatch = 50\nepochs = 4\n"
                      "[data.csv]\ncolumns = ['x:float32', 'click:float32']\n"
                      "label = {column = 'click'}\n[validation]\nfiles = 'a.csv'\n"
                      "[features]\nnumeric = 'x'\n[model]\nkind = 'wide'\nthreshold = " +
                          threshold + "\n" + rest);
  }
  double evaluated(const std::string& metric) {
    EXPECT_EQ(run_.cairn({"evaluate", run_.path("run"), "--data", run_.path("a.csv"), "--json"}), 0)
        << run_.output();
    return parse_json(run_.output(), "the evaluation")["metrics"].value(metric, -1.0);
  }

  JobRun run_;
  std::vector<bool> clicked_;
};

TEST_P(Decisions, AreMadeAboveTheThresholdThatValidationDataAsksFor) {
  write_job("'recall >= 0.8'");
  const Json metrics = run_.trained(GetParam());
  EXPECT_FALSE(metrics.contains("threshold"));  // the test data has no say
  const double threshold =
      parse_json(run_.folder.read("report"), "the report")["validation"]["threshold"];
  const std::vector<std::string> lines = run_.predicted(run_.folder.read("a.csv"));
  ASSERT_EQ(lines.front(), "probability,decision");
  double found = 0, positives = 0;
  for (std::size_t i = 0; i < clicked_.size(); ++i) {
    const std::string& line = lines[i + 1];
    const bool yes = line.substr(line.find(',') + 1) == "1";
    EXPECT_EQ(yes, std::stof(line) > static_cast<float>(threshold)) << line;
    positives += clicked_[i];
    found += clicked_[i] && yes;
  }
  EXPECT_GE(found / positives, 0.8);
  EXPECT_LT(found / positives, 0.95);
  EXPECT_NEAR(evaluated("decision_recall"), found / positives, 1e-6);
  EXPECT_GT(evaluated("decision_f1"), 0.3);
}

INSTANTIATE_TEST_SUITE_P(Under, Decisions, ::testing::Values("one_device", "parameter_server"));

using DecisionsOnOneDevice = Decisions;

TEST_P(DecisionsOnOneDevice, AreThoseOfTheBestModelWhereTheRunGoesBackToIt) {
  write_job("'f1'",
            "[optimizer]\nlearning_rate = 30.0\n[evaluation]\nevery = 8\n[early_stopping]\n"
            "monitor = 'logloss'\n");
  run_.trained(GetParam());
  ASSERT_THAT(run_.output(), HasSubstr("went back to the best model"));
  const Json report = parse_json(run_.folder.read("report"), "the report");
  EXPECT_THAT(run_.predicted("50\n").front(), "probability,decision") << report.dump();
  // All data evaluated the model that was saved.
  EXPECT_NEAR(evaluated("logloss"), report["validation"]["logloss"].get<double>(), 1e-5);
}

TEST_P(DecisionsOnOneDevice, AreNotMadeWhereNoThresholdIsGoodEnough) {
  write_job("'precision >= 1'");
  run_.folder.write("a.csv", "1,0\n1,1\n1,0\n1,1\n");
  EXPECT_EQ(run_.cairn({"train", run_.path("job.toml"), "--strategy", GetParam(), "--dir",
                        run_.path("run"), "--steps", "4"}),
            0);
  EXPECT_THAT(run_.output(), AllOf(HasSubstr("the model decides nothing"),
                                   HasSubstr("model.threshold = \"precision >= 1\"")));
  EXPECT_EQ(run_.predicted("1,0\n").front(), "probability");
}

INSTANTIATE_TEST_SUITE_P(Under, DecisionsOnOneDevice, ::testing::Values("one_device"));

}  // namespace
}  // namespace cairn::tools
