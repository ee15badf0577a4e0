// Columns of dates in a job file.
#include <gmock/gmock.h>

#include <map>

#include "data/dataset_iterator.h"
#include "tests/tools/temp_folder.h"
#include "tools/fitted_features.h"
#include "tools/job_model.h"
#include "tools/job_words.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kDay = 86'400;

class JobDates : public ::testing::Test {
 protected:
  // A job over lines of a date and a label. `column`: the entry of the date's column.
  static std::string text(const std::string& column, const std::string& features,
                          const std::string& more = "") {
    return "[data]\ntrain = 'a.csv'\n" + more + "[data.csv]\nlabel = 'y'\ncolumns = [\n" + column +
           ",\n'y:float32']\n[features]\n" + features;
  }
  Job job(const std::string& text) const { return parse_job(text, folder_.path() + "/some.toml"); }
  std::string error_of(const std::string& text) const {
    try {
      const Job read = job(text);
      JobNetwork(read, fit_features(read));
    } catch (const Error& error) {
      return in_job_words(error.what());
    }
    return "it was taken";
  }
  std::map<std::string, Tensor> batch_of(const std::string& text) const {
    const Job read = job(text);
    const Dataset data = train_source(read, fit_features(read)).batch(100);
    const Element all = *open(data)->next();
    std::map<std::string, Tensor> columns;
    for (std::size_t i = 0; i < all.size(); ++i)
      columns[data.element_spec().columns[i].name] = all[i];
    return columns;
  }

  TempFolder folder_;
};

const std::string kDate = "'day:date:%Y-%m-%d'";

// ---- columns ----

TEST_F(JobDates, AColumnOfDatesIsSecondsSince1970) {
  folder_.write("a.csv", "1970-01-02,1\n1970-01-04,0\n");
  EXPECT_THAT(batch_of(text(kDate, "plain = 'day'\n"))["day"].values<std::int64_t>(),
              ElementsAre(kDay, 3 * kDay));
  EXPECT_THAT(batch_of(text("{name = 'day', dtype = 'date:%Y-%m-%d', unknown = 'never', default = "
                            "'1970-01-01'}",
                            "plain = 'day'\n"))["day"]
                  .values<std::int64_t>(),
              ElementsAre(kDay, 3 * kDay));
}

TEST_F(JobDates, AFormatMayHoldColons) {
  folder_.write("a.csv", "1970-01-01 01:00:05,1\n1970-01-01 00:00:00,0\n");
  EXPECT_THAT(
      batch_of(text("'at:date:%Y-%m-%d %H:%M:%S'", "plain = 'at'\n"))["at"].values<std::int64_t>(),
      ElementsAre(3605, 0));
}

TEST_F(JobDates, ABadDateIsToldInWordsOfTheJobOrLeftOut) {
  folder_.write("a.csv", "1970-01-02,1\n1970-02-30,0\n");
  const std::string features = "plain = 'day'\n";
  EXPECT_THAT(
      error_of(text(kDate, features)),
      AllOf(HasSubstr("a.csv:2:1: column \"day\": \"1970-02-30\" is no day of the calendar"),
            HasSubstr("data.skip_bad_rows = true"), Not(HasSubstr("::"))));
  const Job lenient = job(text(kDate, features, "skip_bad_rows = true\n"));
  const FittedFeatures fitted = fit_features(lenient);
  EXPECT_EQ(fitted.examples, 1);
  EXPECT_EQ(fitted.lines.skipped, 1);
  folder_.write("a.csv", "1970-01-02,1\n,0\n");
  EXPECT_THAT(error_of(text(kDate, features)), HasSubstr("no \"default\"; give it one"));
}

TEST_F(JobDates, ConditionsCompareDates) {
  folder_.write("a.csv", "1970-01-02,1\n1970-01-04,0\n");
  EXPECT_THAT(batch_of(text(kDate, "plain = 'day'\n", "where = \"day >= '1970-01-03'\"\n"))["day"]
                  .values<std::int64_t>(),
              ElementsAre(3 * kDay));
}

TEST_F(JobDates, WhatIsNoFormatIsToldWithItsLineAndTheCure) {
  EXPECT_THAT(error_of(text("'day:date:%Y-%q'", "")),
              AllOf(HasSubstr("some.toml:6: data.csv.columns: \"day\": the date format \"%Y-%q\" "
                              "has the directive \"%q\""),
                    HasSubstr("%Y, %y, %m")));
  EXPECT_THAT(error_of(text("'day:date'", "")),
              HasSubstr("some.toml:6: data.csv.columns: \"day\": a date needs its format"));
  EXPECT_THAT(
      error_of(text("{name = 'day', dtype = 'date:%Y', default = 0}", "")),
      HasSubstr("some.toml:6: data.csv.columns: \"day\": its default: \"0\" is not a date"));
  EXPECT_THAT(error_of(text("{name = 'day', dtype = 'date:%Y', indicator = true}", "")),
              HasSubstr("give it a \"default\""));
  EXPECT_THAT(error_of("[data]\ntrain = 'a'\n[data.tfrecords]\nfeatures = ['day:date:%Y', 'y:int64'"
                       "]\nlabel = 'y'\n"),
              AllOf(HasSubstr("some.toml:4: data.tfrecords.features"),
                    HasSubstr("int64, the seconds since 1970-01-01 UTC")));
  EXPECT_THAT(error_of("[data]\ntrain = 'a'\n[data.records]\nfields = ['day:date:%Y']\n"),
              HasSubstr("data.records.fields: \"day:date:%Y\": dates as text are of csv"));
}

TEST_F(JobDates, ALabelOfDatesIsNoLabelOfTwoClassesWithoutAThreshold) {
  folder_.write("a.csv", "1970-01-02,1\n1970-01-04,0\n");
  const auto predicting = [](const std::string& label, const std::string& model) {
    return "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['day:date:%Y-%m-%d', 'x:float32']\n"
           "label = " +
           label + "\n[features]\nnumeric = 'x'\n" + model;
  };
  EXPECT_THAT(error_of(predicting("'day'", "")),
              HasSubstr("data.csv.label: column \"day\" holds dates, which are no label"));
  EXPECT_EQ(error_of(predicting("{column = 'day', above = 86400}", "")), "it was taken");
  EXPECT_EQ(error_of(predicting("{column = 'day', positive = '1970-01-02'}", "")), "it was taken");
  EXPECT_EQ(error_of(predicting("'day'", "[model]\nobjective = 'regression'\n")), "it was taken");
}

}  // namespace
}  // namespace cairn::tools
