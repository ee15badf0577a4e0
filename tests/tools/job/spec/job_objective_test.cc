// A job reads its label: from which rows, as which number, and for which loss and metrics.
#include "tools/job/spec/job_objective.h"

#include <gmock/gmock.h>

#include <cmath>

#include "data/dataset/dataset_iterator.h"
#include "data/file/tfrecord_writer.h"
#include "tests/tools/job_fixture.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/run/resume.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_metrics.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobObjectiveTest : public JobFixture {
 protected:
  // The values of a column of all of the data, which is no larger than a batch.
  template <typename T>
  static std::vector<T> column(const Dataset& data, const std::string& name) {
    const Element all = *open(data.batch(1000))->next();
    const auto values = all[data.element_spec().find(name)].values<T>();
    return {values.begin(), values.end()};
  }
};

constexpr const char* kDays =
    "day,carrier,delay\n1,UA,20\n2,AA,NA\n3,UA,\n4,B6,-3\n5,UA,15\n6,AA,16\n";

std::string days(const std::string& of_data, const std::string& label,
                 const std::string& rest = "") {
  return "[data]\ntrain = 'a.csv'\n" + of_data +
         "\n[data.csv]\nheader = true\nunknown = 'NA'\n"
         "columns = ['day:float32', 'carrier', 'delay:float32']\nlabel = " +
         label + "\n[features]\nnumeric = 'day'\n" + rest;
}

// ---- rows ----

TEST_F(JobObjectiveTest, RowsWithoutALabelAreLeftOutIfTheJobSaysSo) {
  folder_.write("a.csv", kDays);
  const FittedFeatures features =
      fit_features(job(days("", "{column = 'delay', above = 15, unknown = 'skip'}")));
  EXPECT_EQ(features.examples, 4);
  EXPECT_EQ(features.lines.unlabelled, 2);
  EXPECT_THAT(error_of(days("", "{column = 'delay', above = 15}")),
              HasSubstr("a.csv:3:6: column \"delay\": the value is unknown (\"NA\")"));
}

TEST_F(JobObjectiveTest, ConditionsDealTheRowsOfOneFileOut) {
  folder_.write("a.csv", kDays);
  const Job read =
      job(days("test = 'a.csv'\nwhere = ['day % 3 != 0', \"carrier in ['UA', 'B6']\"]\n"
               "test_where = 'day % 3 == 0'",
               "{column = 'delay', above = 15, unknown = 'skip'}",
               "[validation]\nfiles = 'a.csv'\nwhere = 'day == 5'\n"));
  const FittedFeatures features = fit_features(read);
  EXPECT_EQ(features.examples, 3);
  EXPECT_EQ(features.lines.filtered, 3);
  EXPECT_FLOAT_EQ(features.columns[0].numerics[0].mean, 10.0f / 3);
  EXPECT_THAT(column<float>(train_data(read), "day"), ElementsAre(1, 4, 5));
  const std::vector<EvaluationData> evaluated = eval_data(read);
  EXPECT_THAT(column<float>(evaluated[0].data, "day"), ElementsAre(5));
  EXPECT_THAT(column<float>(evaluated[1].data, "day"), ElementsAre(6));
}

TEST_F(JobObjectiveTest, ConditionsAddToWhatIsHeldBack) {
  folder_.write("a.csv", kDays);
  const std::string label = "{column = 'delay', above = 15, unknown = 'skip'}";
  const Job read =
      job(days("where = 'day != 4'", label,
               "[validation]\nsplit_by = 'carrier'\nshare = 0.999\nwhere = 'day > 1'"));
  const std::vector<EvaluationData> evaluated = eval_data(read);
  EXPECT_THAT(column<float>(evaluated[0].data, "day"), ElementsAre(5, 6));
}

TEST_F(JobObjectiveTest, ConditionsAreReadOfExamplesToo) {
  TfRecordWriter file(folder_.path() + "/a.tfrecord");
  for (std::int64_t i = 0; i < 10; ++i)
    file.write(ExampleMessage().integers("day", {i}).integers("delay", {i * i}).bytes());
  file.finish();
  const std::string text =
      "[data]\ntrain = 'a.tfrecord'\nwhere = ['day % 3 == 1', 'delay in [1, 16, 49.0, 7]', 'day <= "
      "4']\n[data.tfrecords]\nfeatures = ['day:int64', 'delay:int64']\nlabel = {column = 'delay', "
      "below = 10}\n[features]\nnumeric = 'day'\n";
  const FittedFeatures features = fit_features(job(text));
  EXPECT_EQ(features.examples, 2);
  EXPECT_THAT(column<std::int64_t>(train_data(job(text)), "day"), ElementsAre(1, 4));
}

TEST_F(JobObjectiveTest, ConditionsOfNoColumnAreNamedWithTheirKey) {
  const std::string label = "{column = 'delay'}";
  EXPECT_THAT(error_of(days("where = 'dya > 1'", label)),
              AllOf(HasSubstr("some.toml:3: data.where: the condition \"dya > 1\", character 1"),
                    HasSubstr("did you mean \"day\"?")));
  EXPECT_THAT(error_of(days("test_where = ['day > 1', 'day > x']", label)),
              HasSubstr("some.toml:3: data.test_where: the condition \"day > x\", character 7"));
  EXPECT_THAT(error_of(days("", label, "[validation]\nfiles = 'a.csv'\nwhere = 'day'")),
              HasSubstr("validation.where: the condition \"day\", character 4 (its end)"));
  EXPECT_THAT(error_of(days("", label, "[validation]\nwhere = 'day > 1'")),
              HasSubstr("validation.where is of validation.files or validation.split_by"));
}

TEST_F(JobObjectiveTest, ConditionsThatTheFormatCannotAskAreRefused) {
  EXPECT_THAT(error_of("[data]\ntrain = 'a.svm'\nwhere = 'x > 1'\n[data.libsvm]\ndimension = 3\n"),
              HasSubstr("some.toml:3: data.where: lines of libsvm have no columns"));
  EXPECT_THAT(error_of("[data]\ntrain = 'a.tfrecord'\nwhere = 'day known'\n[data.tfrecords]\n"
                       "features = ['day:int64']\nlabel = 'day'\n"),
              HasSubstr("of data.format = \"tfrecords\" only numbers can be compared"));
}

// ---- labels and objectives ----

Tensor numbers(std::vector<float> values) {
  const auto rows = static_cast<std::int64_t>(values.size());
  return Tensor::of<float>({rows}, values);
}
std::vector<float> values_of(const Array& array) {
  const Tensor tensor = array.eval();
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

TEST_F(JobObjectiveTest, AThresholdMakesTwoClasses) {
  const Objective above(job(days("", "{column = 'delay', above = 15}")));
  EXPECT_THAT(values_of(above.truth(numbers({14.5f, 15, 15.5f}))), ElementsAre(0, 0, 1));
  const Objective below(job(days("", "{column = 'delay', below = -1.5}")));
  EXPECT_THAT(values_of(below.truth(numbers({-2, -1.5f, 7}))), ElementsAre(1, 0, 0));
}

TEST_F(JobObjectiveTest, RegressionIsToldByItsErrors) {
  const auto with = [&](const std::string& loss) {
    return Objective(
        job(days("", "{column = 'delay'}", "[model]\nobjective = 'regression'\n" + loss)));
  };
  const Tensor given = numbers({1, 2}), truth = numbers({1, 5});
  EXPECT_THAT(values_of(with("").losses(given, truth)), ElementsAre(0, 9));
  EXPECT_THAT(values_of(with("loss = 'mae'").losses(given, truth)), ElementsAre(0, 3));
  EXPECT_THAT(values_of(with("loss = 'huber'\nhuber_delta = 2").losses(given, truth)),
              ElementsAre(0, 4));
  std::vector<std::string> told;
  const Job regression = job(days("", "{column = 'delay'}", "[model]\nobjective = 'regression'\n"));
  for (const auto& metric : make_metrics(regression, MetricOf::kExamples)) {
    metric->add(metric->summary(given, truth).eval());
    told.push_back(metric->name());
    EXPECT_NEAR(metric->result(),
                told.size() == 1   ? std::sqrt(4.5)
                : told.size() == 2 ? 1.5
                                   : 4.5,
                1e-6);
  }
  EXPECT_THAT(told, ElementsAre("rmse", "mae", "mse"));
}

TEST_F(JobObjectiveTest, ClassesAreNumberedOrNamed) {
  folder_.write("a.csv", "1,AA\n2,UA\n3,B6\n");
  const std::string text =
      "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['day:float32', 'carrier']\nlabel = {column "
      "= "
      "'carrier'}\n[features]\nnumeric = 'day'\n[model]\nobjective = 'multiclass'\nclasses = ";
  const Job named = job(text + "['B6', 'UA', 'AA']\n");
  EXPECT_EQ(named.model.outputs(), 3);
  EXPECT_THAT(column<std::int64_t>(train_data(named), "carrier"), ElementsAre(2, 1, 0));
  EXPECT_THAT(error_of(text + "['B6', 'UA']\n"),
              HasSubstr("a.csv:1:3: column \"carrier\": \"AA\" is none of the label's classes"));
  folder_.write("a.csv", "1,0\n2,1\n");
  EXPECT_THAT(column<std::int64_t>(train_data(job(text + "2\n")), "carrier"), ElementsAre(0, 1));
}

TEST_F(JobObjectiveTest, SeveralClassesAreJudgedByTheLikeliest) {
  const Job read = job(days("", "{column = 'carrier'}",
                            "[model]\nobjective = 'multiclass'\nclasses = ['UA', 'AA', 'B6']\n"
                            "[evaluation]\n"
                            "metrics = ['accuracy', 'logloss', 'top_k_accuracy@2']\n"));
  const Objective objective(read);
  const Tensor logits = Tensor::of<float>({2, 3}, std::vector<float>{0, 0, 0, 0, 9, 0});
  const Tensor truth = Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{0, 2});
  const std::vector<float> losses = values_of(objective.losses(logits, truth));
  EXPECT_NEAR(losses[0], std::log(3), 1e-5);
  EXPECT_NEAR(losses[1], 9, 1e-2);
  const Array prediction = objective.prediction(logits);
  const auto metrics = make_metrics(read, MetricOf::kExamples);
  for (const auto& metric : metrics) metric->add(metric->summary(prediction, truth).eval());
  EXPECT_EQ(metrics[0]->name(), "accuracy");
  EXPECT_NEAR(metrics[0]->result(), 0.5, 1e-6);
  EXPECT_NEAR(metrics[1]->result(), (losses[0] + losses[1]) / 2, 1e-3);
  EXPECT_EQ(metrics[2]->name(), "top_k_accuracy@2");
  EXPECT_NEAR(metrics[2]->result(), 1, 1e-6);
}

TEST_F(JobObjectiveTest, WhatMakesNoSenseIsRefusedWithItsPlace) {
  const std::string label = "{column = 'delay'}";
  EXPECT_THAT(error_of(days("", label, "[model]\nobjective = 'regresion'")),
              AllOf(HasSubstr("model.objective"), HasSubstr("\"regression\"?")));
  EXPECT_THAT(error_of(days("", label, "[model]\nloss = 'mae'")), HasSubstr("unknown key"));
  EXPECT_THAT(error_of(days("", label, "[model]\nobjective = 'regression'\nloss = 'mea'")),
              HasSubstr("some.toml:13: model.loss"));
  EXPECT_THAT(error_of(days("", label, "[model]\nobjective = 'multiclass'")),
              HasSubstr("needs classes = N"));
  EXPECT_THAT(error_of(days("", label, "[model]\nobjective = 'multiclass'\nclasses = 1")),
              HasSubstr("model.classes is 1"));
  EXPECT_THAT(
      error_of(days("", label, "[model]\nkind = 'dlrm'\nobjective = 'multiclass'\nclasses = 3")),
      HasSubstr("model.kind is \"dlrm\", which gives one number"));
  EXPECT_THAT(error_of(days("", "{column = 'delay', above = 1, below = 2}")),
              HasSubstr("data.csv.label: give either above or below"));
  EXPECT_THAT(error_of(days("", "{column = 'carrier', above = 1, positive = 'UA'}")),
              HasSubstr("data.csv.label: above and below are of numbers"));
  EXPECT_THAT(error_of(days("", "{column = 'delay', unknown = 'drop'}")),
              HasSubstr("data.csv.label.unknown"));
  EXPECT_THAT(
      error_of(days("", "{column = 'delay', above = 1}", "[model]\nobjective = 'regression'")),
      HasSubstr("model.objective is \"regression\", and data.csv.label.column has a threshold"));
  EXPECT_THAT(error_of(days("", "{column = 'carrier', above = 1}")),
              HasSubstr("\"carrier\" holds text, where a number is wanted"));
  EXPECT_THAT(error_of(days("", "{column = 'carrier', positive = 'UA'}",
                            "[model]\nobjective = 'regression'")),
              HasSubstr("data.csv.label.positive is of model.objective = \"binary\""));
}

TEST_F(JobObjectiveTest, MetricsAndEarlyStoppingAreOfTheObjective) {
  const std::string label = "{column = 'delay'}";
  EXPECT_THAT(error_of(days("", label, "[evaluation]\nmetrics = ['auc', 'rmse']")),
              AllOf(HasSubstr("evaluation.metrics"), HasSubstr("\"rmse\"")));
  EXPECT_THAT(error_of(days("", label, "[early_stopping]")),
              HasSubstr("say with evaluation.every when"));
  EXPECT_THAT(error_of(days("", label, "[evaluation]\nevery = 5\n[early_stopping]")),
              HasSubstr("name data for them"));
  const std::string evaluated = "[validation]\nfiles = 'a.csv'\n[evaluation]\nevery = 5\n";
  EXPECT_THAT(error_of(days("", label, evaluated + "[early_stopping]\nmonitor = 'rmse'")),
              AllOf(HasSubstr("early_stopping.monitor"), HasSubstr("auc")));
  EXPECT_THAT(error_of(days("", label, evaluated + "[early_stopping]\npatience = 0")),
              HasSubstr("early_stopping.patience is 0"));
  EXPECT_THAT(error_of(days("", label, evaluated + "[early_stopping]\nmin_delta = -1.0")),
              HasSubstr("early_stopping.min_delta is -1"));
}

TEST_F(JobObjectiveTest, ANumberOfNoClassIsABadRecordToo) {
  const std::vector<float> values = {1, 0, 2, 3};  // x, y, x, y
  folder_.write("a.bin", std::string(reinterpret_cast<const char*>(values.data()), 16));
  const Job read =
      job("[data]\ntrain = 'a.bin'\nformat = 'records'\n[data.records]\nfields = ['x:float32', "
          "'y:float32']\nlabel = 'y'\n[model]\nkind = 'deep'\nobjective = 'multiclass'\nclasses = "
          "3\n");
  const auto examples = open(train_data(read).batch(2));
  try {
    examples->next();
    ADD_FAILURE() << "it was taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("a.bin: record 1 "), HasSubstr("from 0 to 2")));
  }
}

// ---- a label in its own unit ----

std::string delays(const std::string& of_model) {
  return days("", "{column = 'delay', unknown = 'skip'}",
              "[model]\nobjective = 'regression'\n" + of_model);
}

TEST_F(JobObjectiveTest, ALabelIsStandardisedAndPredictedInItsUnit) {
  folder_.write("a.csv", kDays);  // delays of 20, -3, 15 and 16
  const Job read = job(delays("standardize = true\nloss = 'huber'\nhuber_delta = 9\n"));
  const FittedFeatures features = fit_features(read);
  EXPECT_NEAR(features.label.mean, 12, 1e-5);
  const float stddev = std::sqrt((64.0f + 225 + 9 + 16) / 4);
  EXPECT_NEAR(features.label.stddev, stddev, 1e-4);
  EXPECT_EQ(features.columns[0].numerics.size(), 1u);  // the label is no feature

  const Objective objective(read, features.label);
  const Array outputs = Tensor::of<float>({2, 1}, std::vector<float>{0, 1});
  const Tensor predicted = objective.prediction(outputs).eval();
  EXPECT_NEAR(predicted.values<float>()[0], 12, 1e-5);
  EXPECT_NEAR(predicted.values<float>()[1], 12 + stddev, 1e-4);
  const Array truth = Tensor::of<float>({2}, std::vector<float>{15, 12 + stddev + 20});
  const Tensor losses = objective.losses(outputs, truth).eval();
  EXPECT_NEAR(losses.values<float>()[0], 9 / 2.0f / (stddev * stddev), 1e-5);
  EXPECT_NEAR(losses.values<float>()[1], 9 * (20 - 4.5f) / (stddev * stddev), 1e-4);
}

TEST_F(JobObjectiveTest, NewDataKeepsWhatTheLabelWasStandardisedBy) {
  folder_.write("a.csv", kDays);
  const Job read = job(delays("standardize = true\n"));
  const Json saved = metadata_of(read, fit_features(read), 1, 0);
  folder_.write("a.csv", "day,carrier,delay\n1,UA,200\n2,AA,300\n");
  const FittedFeatures later =
      SavedJob(saved, "the checkpoint", {.new_data = true}).features(read, fit_features(read));
  EXPECT_NEAR(later.label.mean, 12, 1e-5);
  EXPECT_FLOAT_EQ(later.columns[0].numerics[0].mean, 4);
}

TEST_F(JobObjectiveTest, RecordsHaveAStandardisedLabelToo) {
  const std::vector<float> values = {1, 10, 2, 30};  // x, y, x, y
  folder_.write("a.bin", std::string(reinterpret_cast<const char*>(values.data()), 16));
  const Job read =
      job("[data]\ntrain = 'a.bin'\nformat = 'records'\n[data.records]\nfields = ['x:float32', "
          "'y:float32']\nlabel = 'y'\n[model]\nkind = 'deep'\nobjective = 'regression'\n"
          "standardize = true\n");
  EXPECT_NEAR(fit_features(read).label.mean, 20, 1e-5);
  EXPECT_NEAR(fit_features(read).label.stddev, 10, 1e-5);
}

TEST_F(JobObjectiveTest, OnlyRegressionStandardises) {
  folder_.write("a.csv", kDays);
  EXPECT_THAT(error_of(days("", "{column = 'delay', above = 15, unknown = 'skip'}",
                            "[model]\nstandardize = true\n")),
              HasSubstr("unknown key \"model.standardize\""));
}

TEST(JobObjective, LossesAreMultipliedByTheWeightOfTheirClass) {
  const auto losses = [](const std::string& model, const Tensor& outputs, const Tensor& truth) {
    const Objective objective(
        parse_job("[data]\ntrain = 'a'\n[model]\nkind = 'deep'\n" + model, "some.toml"));
    const Tensor made = objective.losses(Array(outputs), Array(truth)).eval();
    return std::vector<float>(made.values<float>().begin(), made.values<float>().end());
  };
  const Tensor logits = Tensor::of<float>({2, 1}, std::vector<float>{0, 0}),
               truth = Tensor::of<float>({2}, std::vector<float>{0, 1});
  const float half = std::log(2.0f);
  EXPECT_THAT(
      losses("class_weights = [0.5, 3]\n", logits, truth),
      ElementsAre(testing::FloatNear(0.5f * half, 1e-6f), testing::FloatNear(3 * half, 1e-6f)));
  const Tensor pairs = Tensor::of<float>({2, 2}, std::vector<float>{0, 0, 0, 0}),
               classes = Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{1, 0});
  EXPECT_THAT(
      losses("objective = 'multiclass'\nclasses = 2\nclass_weights = [0.5, 3]\n", pairs, classes),
      ElementsAre(testing::FloatNear(3 * half, 1e-6f), testing::FloatNear(0.5f * half, 1e-6f)));
  EXPECT_THROW(losses("class_weights = [1, 2, 3]\n", logits, truth), InvalidArgumentError);
  EXPECT_THROW(losses("objective = 'regression'\nclass_weights = [1, 2]\n", logits, truth),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::tools
