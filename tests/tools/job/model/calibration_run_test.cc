// `cairn evaluate --calibrate` from the training to predictions: its report, the outputs that
// stay as they are, and its errors.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "core/base/json.h"
#include "core/graph/ops.h"
#include "model/saved/loaded_model.h"
#include "model/saved/replace_outputs.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Positive is rare at x = 0 and frequent at x = 9; the weight is there for tests that name it.
std::string rows(bool reversed = false) {
  std::string text = "x,y,w\n";
  for (int i = 0; i < 600; ++i) {
    const int x = i % 10;
    const bool positive = i * 7 % 30 < 2 * x + 2;
    text += str(x, ",", positive != reversed ? 1 : 0, ",", 1 + i % 3, "\n");
  }
  return text;
}

// Class weights move all probabilities up, which a calibration sets right.
std::string job(const std::string& of_model = "class_weights = [1, 5]\n",
                const std::string& of_data = "") {
  return "[data]\ntrain = 'train.csv'\nbatch = 20\n" + of_data +
         "[data.csv]\nheader = true\ncolumns = ['x:float32', 'y:float32', 'w:float32']\n"
         "label = {column = 'y'}\n[features]\nnumeric = 'x'\n[model]\nkind = 'deep'\n"
         "hidden = []\n" +
         of_model;
}

class Calibrated : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  int run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CAIRN_PROGRAM);
    std::filesystem::remove(path("output"));
    ChildProcess child({.arguments = arguments, .output_file = path("output")});
    const int code = end_in_time(child, 120'000, folder_.read("output")).code;
    said_ = folder_.read("output");
    return code;
  }
  void train(const std::string& text = job()) {
    folder_.write("train.csv", rows());
    folder_.write("job.toml", text);
    ASSERT_EQ(run({"train", path("job.toml"), "--strategy", "one_device", "--steps", "300", "--dir",
                   path("run")}),
              0)
        << said_;
  }
  int evaluate(std::vector<std::string> more, const std::string& data = "train.csv") {
    std::vector<std::string> arguments{"evaluate", path("run"), "--data", path(data)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  void calibrate(const std::string& method) {
    ASSERT_EQ(evaluate({"--calibrate", method}), 0) << said_;
  }
  Json evaluated(std::vector<std::string> more) {
    more.push_back("--json");
    EXPECT_EQ(evaluate(more), 0) << said_;
    return parse_json(said_, "the evaluation");
  }
  // The lines of predictions for the training data.
  std::vector<std::string> predictions() {
    EXPECT_EQ(run({"predict", path("run"), "--data", path("train.csv"), "--out", path("out.csv"),
                   "--overwrite"}),
              0)
        << said_;
    std::istringstream text(folder_.read("out.csv"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  std::string model(const std::string& file) const { return folder_.read("run/model/" + file); }

  TempFolder folder_;
  std::string said_;
};

// The mean loss of the first column of predictions by the labels of the rows.
double logloss_of(const std::vector<std::string>& predicted) {
  std::istringstream text(rows());
  std::string row;
  std::getline(text, row);
  double sum = 0;
  for (std::size_t i = 1; std::getline(text, row); ++i) {
    const double p = std::stod(predicted.at(i));
    sum -= std::log(row.at(2) == '1' ? p : 1 - p);
  }
  return sum / static_cast<double>(predicted.size() - 1);
}

TEST_F(Calibrated, ProbabilitiesAreToldKeptAndPredicted) {
  train();
  const std::vector<std::string> raw = predictions();
  EXPECT_EQ(raw.front(), "probability");
  const double raw_logloss = evaluated({})["metrics"]["logloss"];

  const Json told = evaluated({"--calibrate", "platt"});
  const Json fitted = told["calibration"];
  EXPECT_EQ(told["metrics"]["logloss"], raw_logloss) << "metrics are of the model as it was";
  EXPECT_EQ(fitted["method"], "platt");
  EXPECT_EQ(fitted["examples"], 600);
  EXPECT_EQ(fitted["model"], path("run/model"));
  EXPECT_EQ(fitted["fitted_on_these_examples"], true);
  EXPECT_NEAR(fitted["before"]["logloss"].get<double>(), raw_logloss, 1e-6);
  EXPECT_GT(fitted["before"]["calibration"].get<double>(), 1.2);
  EXPECT_NEAR(fitted["after"]["calibration"].get<double>(), 1, 1e-3);
  const double after = fitted["after"]["logloss"];
  EXPECT_LT(after, raw_logloss - 0.05);

  const std::vector<std::string> now = predictions();
  EXPECT_EQ(now.front(), "probability,raw_probability");
  for (std::size_t i = 1; i < raw.size(); ++i)
    ASSERT_EQ(now.at(i).substr(now[i].find(',') + 1), raw[i]) << i;
  EXPECT_NEAR(logloss_of(now), after, 1e-6);
  EXPECT_NEAR(evaluated({})["metrics"]["logloss"].get<double>(), after, 1e-6);

  EXPECT_EQ(run({"model", "show", path("run")}), 0);
  EXPECT_THAT(said_, AllOf(HasSubstr("calibrated by platt on 600 examples"),
                           HasSubstr("raw_probability  float32[?]")));
  EXPECT_EQ(run({"model", "verify", path("run")}), 0) << said_;
  const Json kept = parse_json(model("model.json"), "model.json")["metadata"]["calibration"];
  EXPECT_EQ(kept["method"], "platt");
  EXPECT_EQ(kept["slope"], fitted["slope"]);
  EXPECT_EQ(kept["intercept"], fitted["intercept"]);
}

TEST_F(Calibrated, ByIsotonicRegressionGivesEachValueItsShare) {
  train();
  calibrate("isotonic");
  EXPECT_THAT(said_, AllOf(HasSubstr("calibrated by isotonic on 600 examples, kept in " +
                                     path("run/model") + ": probability is a rising line through"),
                           HasSubstr("before: logloss "), HasSubstr("after:  logloss "),
                           HasSubstr("calibration 1.0000, on the examples that it was fitted on")));
  // 2 of 3 rows of x = 9 are positive, and fewer of all others.
  const std::vector<std::string> now = predictions();
  EXPECT_NEAR(std::stod(now.at(10)), 2.0 / 3, 1e-6);
  EXPECT_NEAR(std::stod(now.at(1)), 0, 0.2);
}

TEST_F(Calibrated, AgainBeginsWithTheNetworksOwnProbability) {
  train();
  calibrate("platt");
  const std::string graph = model("graph"), description = model("model.json");
  calibrate("isotonic");
  EXPECT_NE(model("graph"), graph);
  calibrate("platt");
  EXPECT_EQ(model("graph"), graph);
  EXPECT_EQ(model("model.json"), description);
  EXPECT_EQ(predictions().front(), "probability,raw_probability");
}

TEST_F(Calibrated, ByNoneIsTheModelAsItWasSaved) {
  train();
  const std::string graph = model("graph"), description = model("model.json");
  const std::vector<std::string> raw = predictions();
  calibrate("none");
  EXPECT_THAT(said_, HasSubstr("is not calibrated: it is as it was"));
  calibrate("isotonic");
  EXPECT_NE(predictions(), raw);
  calibrate("none");
  EXPECT_THAT(said_, HasSubstr("the calibration is taken away from " + path("run/model")));
  EXPECT_EQ(model("graph"), graph);
  EXPECT_EQ(model("model.json"), description);
  EXPECT_EQ(predictions(), raw);
  EXPECT_EQ(run({"model", "show", path("run")}), 0);
  EXPECT_THAT(said_, Not(HasSubstr("calibrated")));
}

TEST_F(Calibrated, OverAPipeReadsItOnce) {
  train();
  calibrate("platt");
  const std::string wanted = model("model.json");
  calibrate("none");
  ChildProcess child({.arguments = {"/bin/sh", "-c",
                                    "cat " + path("train.csv") + " | " + CAIRN_PROGRAM +
                                        " evaluate " + path("run") + " --data - --calibrate platt"},
                      .output_file = path("output")});
  ASSERT_EQ(end_in_time(child, 120'000, folder_.read("output")).code, 0);
  EXPECT_EQ(model("model.json"), wanted);
}

TEST_F(Calibrated, ExamplesCountByTheWeightsOfTheJob) {
  train(job("", "weight = 'w'\n"));
  calibrate("isotonic");
  // The rows of x = 9 are the examples 9, 19, 29, ... of those weights.
  double positive = 0, all = 0;
  for (int i = 9; i < 600; i += 10) {
    all += 1 + i % 3;
    positive += i * 7 % 30 < 20 ? 1 + i % 3 : 0;
  }
  EXPECT_NEAR(std::stod(predictions().at(10)), positive / all, 1e-6);
}

// Another output, as of a threshold, is computed from the network's own probability.
TEST_F(Calibrated, OtherOutputsStayAsTheyAreAndWhereTheyAre) {
  train();
  replace_outputs(
      path("run/model"),
      [](const Outputs& today) {
        const Array own = today["probability"];
        return Outputs{{"probability", own}, {"decision", cast(own > Array(0.6f), DType::kInt32)}};
      },
      read_saved_model(path("run/model")).metadata);
  const std::string graph = model("graph");
  const std::vector<std::string> before = predictions();
  calibrate("platt");
  const std::vector<std::string> now = predictions();
  EXPECT_EQ(now.front(), "probability,decision,raw_probability");
  for (std::size_t i = 1; i < now.size(); ++i) {
    const std::string decision = before.at(i).substr(before[i].find(',') + 1);
    const std::string own = before[i].substr(0, before[i].find(','));
    ASSERT_EQ(now[i].substr(now[i].find(',') + 1), decision + "," + own);
  }
  calibrate("none");
  EXPECT_EQ(model("graph"), graph);
}

TEST_F(Calibrated, InReverseIsWarnedOf) {
  train();
  folder_.write("reversed.csv", rows(true));
  EXPECT_EQ(evaluate({"--calibrate", "platt"}, "reversed.csv"), 0);
  EXPECT_THAT(said_, HasSubstr("warning: the slope of the calibration is not above 0"));
  EXPECT_EQ(evaluate({"--calibrate", "isotonic"}, "reversed.csv"), 0);
  EXPECT_THAT(said_, HasSubstr("gives every example the same probability"));
}

TEST_F(Calibrated, ThatCannotBeLeavesTheModelAsItWas) {
  train();
  const std::string description = model("model.json");
  folder_.write("negative.csv", "x,y,w\n1,0,1\n2,0,1\n");
  EXPECT_EQ(evaluate({"--calibrate", "platt"}, "negative.csv"), 1);
  EXPECT_THAT(said_, HasSubstr("no example is positive"));
  folder_.write("same.csv", "x,y,w\n1,0,1\n1,1,1\n");
  EXPECT_EQ(evaluate({"--calibrate", "isotonic"}, "same.csv"), 1);
  EXPECT_THAT(said_, HasSubstr("for every example"));
  EXPECT_NE(evaluate({"--calibrate", "sigmoid"}), 0);
  EXPECT_THAT(said_, AllOf(HasSubstr("sigmoid"), HasSubstr("isotonic")));
  EXPECT_EQ(model("model.json"), description);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(path("run")))
    if (entry.path().filename().string().starts_with("model"))
      left.push_back(entry.path().filename());
  EXPECT_THAT(left, ElementsAre("model"));
}

TEST_F(Calibrated, OfAnotherObjectiveIsRefused) {
  train(job("objective = 'regression'\n"));
  EXPECT_EQ(evaluate({"--calibrate", "platt"}), 1);
  EXPECT_THAT(said_, AllOf(HasSubstr("the objective of the model is \"regression\""),
                           HasSubstr("leave --calibrate out")));
}

}  // namespace
}  // namespace cairn::tools
