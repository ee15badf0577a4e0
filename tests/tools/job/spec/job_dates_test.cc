// Columns of dates in a job file, and what models read of them.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "data/dataset/dataset_iterator.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/tools/job_fixture.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/run/resume.h"
#include "tools/job/toml/job_words.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr std::int64_t kDay = 86'400;

class JobDates : public JobFixture {
 protected:
  // A job over lines of a date and a label. `column`: the entry of the date's column.
  static std::string text(const std::string& column, const std::string& features,
                          const std::string& more = "") {
    return "[data]\ntrain = 'a.csv'\n" + more + "[data.csv]\nlabel = 'y'\ncolumns = [\n" + column +
           ",\n'y:float32']\n[features]\n" + features;
  }
  std::string error_of(const std::string& text) const {
    return in_job_words(raised_by([&] {
      const Job read = job(text);
      JobNetwork(read, fit_features(read));
    }));
  }
  // How many numbers the features that `of` names have.
  static std::int64_t numbers_in(const Job& job, const std::set<std::string>& of) {
    const FittedFeatures fitted = fit_features(job);
    OneDeviceStrategy strategy(7);
    auto batches = strategy.iterate(train_source(job, fitted).batch(2));
    Function step = strategy.function(
        [&](Iterator input) { return numbers_of(fitted, input.get_next().features, of); },
        "numbers");
    return strategy.run(step, {batches})[0].shape()[1];
  }
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

// ---- features ----

const std::string kAll = "dates = {day = ['day_of_week', 'hour', 'month', 'age']}\n";

// Friday the 1st of March, Saturday, and Thursday in the year after; ages count from there.
TEST_F(JobDates, PartsAreIdsAndAnAgeIsAStandardisedNumber) {
  folder_.write("a.csv", "2024-03-01,1\n2024-03-02,0\n2025-01-09,1\n");
  auto batch = batch_of(text(kDate, kAll));
  EXPECT_THAT(batch["day_day_of_week"].values<std::int64_t>(), ElementsAre(4, 5, 3));
  EXPECT_THAT(batch["day_hour"].values<std::int64_t>(), ElementsAre(0, 0, 0));
  EXPECT_THAT(batch["day_month"].values<std::int64_t>(), ElementsAre(2, 2, 0));
  const FittedFeatures fitted = fit_features(job(text(kDate, kAll)));
  std::map<std::string, std::int64_t> rows;
  for (const IdFeature& id : fitted.ids) rows[id.name] = id.rows;
  EXPECT_THAT(rows,
              ElementsAre(Pair("day_day_of_week", 7), Pair("day_hour", 24), Pair("day_month", 12)));
  const auto ages = batch["numeric"].values<float>();  // 314, 313 and 0 days
  EXPECT_NEAR(ages[0], (314 - 209) / 147.78f, 1e-3);
  EXPECT_NEAR(ages[0] - ages[1], 1 / 147.78f, 1e-5);
  EXPECT_NEAR(ages[2], -209 / 147.78f, 1e-3);
}

TEST_F(JobDates, AnAgeIsCountedToTheLatestDateOrToTheOneOfTheJob) {
  folder_.write("a.csv", "2024-03-01,1\n2024-03-05,0\n");
  const auto until = [&](const std::string& reference) {
    const std::string day = "dates = {day = {parts = 'age'" + reference + "}}\n";
    return *fit_features(job(text(kDate, day))).columns.front().numerics.front().days_until;
  };
  EXPECT_EQ(date_text(until("")), "2024-03-05");
  EXPECT_EQ(date_text(until(", reference = 2024-04-01")), "2024-04-01");
  EXPECT_EQ(date_text(until(", reference = '2024-04-01 06:00:00'")), "2024-04-01 06:00:00");
  EXPECT_EQ(date_text(until(", reference = 2024-04-01T06:00:00+02:00")), "2024-04-01 04:00:00");
}

TEST_F(JobDates, EveryKindOfModelReadsThem) {
  folder_.write("a.csv", "2024-03-01,1\n2024-03-02,0\n2025-01-09,1\n");
  for (const char* kind : {"wide", "deep", "wide_deep", "dlrm", "dcn_v2", "deepfm"})
    EXPECT_EQ(error_of(text(kDate, kAll, "") + str("[model]\nkind = '", kind, "'\n")),
              "it was taken")
        << kind;
  EXPECT_EQ(error_of(text(kDate, kAll + "crosses = [{columns = ['day_hour', 'day_month']}]\n")),
            "it was taken");
}

TEST_F(JobDates, ATowerNamesThePartsAsFeatures) {
  folder_.write("a.csv", "2024-03-01,1\n2024-03-02,0\n2025-01-09,1\n");
  const auto towers = [](const std::string& query) {
    return "[data]\ntrain = 'a.csv'\ncandidate = 'film'\n[data.csv]\ncolumns = "
           "['day:date:%Y-%m-%d', 'film']\n[features]\nvocabulary = 'film'\ndates = {day = "
           "['hour', 'age']}\n[model]\nobjective = 'retrieval'\nhidden = [4]\ncandidate = "
           "'film'\nquery = " +
           query + "\n";
  };
  EXPECT_EQ(error_of(towers("['day_hour', 'day_age']")), "it was taken");
  EXPECT_THAT(error_of(towers("'day_hour'")), HasSubstr("\"day_age\" is a feature, and neither"));
}

TEST_F(JobDates, AnIndicatorOfUnknownDatesBelongsToTheTowerOfTheirParts) {
  folder_.write("a.csv", "2024-03-01,1\n,2\n");
  const Job read =
      job(text("{name = 'day', dtype = 'date:%Y-%m-%d', default = '2024-01-01', indicator = true}",
               "dates = {day = ['hour', 'age']}\n[model]\nobjective = 'regression'\n"));
  EXPECT_EQ(numbers_in(read, {"day_hour"}), 1);
  EXPECT_EQ(numbers_in(read, {"day_age"}), 2);
  EXPECT_EQ(numbers_in(read, {}), 2);
}

TEST_F(JobDates, WhatIsNoDateOrNoPartIsToldWithItsLineAndTheCure) {
  folder_.write("a.csv", "2024-03-01,1\n");
  EXPECT_THAT(
      error_of(text("'day'", kAll)),
      AllOf(HasSubstr("some.toml:9: features.dates.day: the column is string, and one date"),
            HasSubstr("\"day:date:%Y-%m-%d\"")));
  EXPECT_THAT(error_of(text("'day:int32'", kAll)), HasSubstr("the column is int32"));
  EXPECT_THAT(
      error_of(text(kDate, "dates = {day = ['hour', 'weekday']}\n")),
      HasSubstr("some.toml:9: features.dates.day is \"weekday\", one of day_of_week, hour"));
  EXPECT_THAT(error_of(text(kDate, "dates = {day = ['hour', 'hour']}\n")), HasSubstr("twice"));
  EXPECT_THAT(error_of(text(kDate, "dates = {day = []}\n")), HasSubstr("at least one of"));
  EXPECT_THAT(error_of(text(kDate, "dates = {day = {reference = 2024-01-01}}\n")),
              HasSubstr("it has no parts"));
  EXPECT_THAT(error_of(text(kDate, "dates = {day = {parts = 'hour', reference = 2024-01-01}}\n")),
              HasSubstr("some.toml:9: features.dates.day.reference must be beside the part"));
  EXPECT_THAT(error_of(text(kDate, "dates = {day = {parts = 'age', reference = 'now'}}\n")),
              HasSubstr("some.toml:9: features.dates.day.reference must be a date, as in"));
  EXPECT_THAT(error_of(text(kDate, "dates = {year = 'age'}\n")),
              HasSubstr("some.toml:9: features.dates names \"year\", which is no column"));
  EXPECT_THAT(error_of(text(kDate, "ids = {day = 10}\n")),
              HasSubstr("some.toml:9: features.ids.day: the column holds dates, which are no ids"));
}

TEST_F(JobDates, OtherFormatsHaveThemAsInt64OrAreRefused) {
  struct Record {
    float y, x;
    std::int64_t day;
  };
  const Record records[] = {{1, 2, 1709251200}, {0, 3, 1709337600}};
  folder_.write("a.bin", {reinterpret_cast<const char*>(records), sizeof records});
  const std::string of_records =
      "[data]\ntrain = 'a.bin'\nformat = 'records'\n[data.records]\nfields = ['y:float32', "
      "'x:float32', 'day:int64']\nlabel = 'y'\n[features]\n" +
      kAll;
  EXPECT_EQ(error_of(of_records), "it was taken");
  auto batch = batch_of(of_records);
  EXPECT_THAT(batch["day_day_of_week"].values<std::int64_t>(), ElementsAre(4, 5));
  EXPECT_THAT(batch["numeric"].values<float>(), ElementsAre(1, -1));
  EXPECT_THAT(batch["x"].values<float>(), ElementsAre(2, 3));
  const auto of = [&](const std::string& data) {
    return error_of("[data]\ntrain = 'a'\n" + data + "[features]\n" + kAll);
  };
  EXPECT_THAT(of("[data.tfrecords]\nfeatures = ['day:string', 'y:int64']\nlabel = 'y'\n"),
              AllOf(HasSubstr("some.toml:7: features.dates.day: the column is string"),
                    HasSubstr("as one int64, the seconds since 1970-01-01 UTC")));
  EXPECT_THAT(of("[data.tfrecords]\nfeatures = ['day:int64[]', 'y:int64']\nlabel = 'y'\n"),
              HasSubstr("the column is int64[]"));
  EXPECT_THAT(of("[data.libsvm]\ndimension = 9\n"), HasSubstr("features.dates is not read"));
}

// A model goes on with the ages that it was trained on.
TEST_F(JobDates, TheReferenceOfAgesIsKeptAndComparedWhenAJobIsResumed) {
  const auto saved_by = [&](const Job& by, ResumeOptions options = {}) {
    return SavedJob(metadata_of(by, fit_features(by), 1, 0), "a-checkpoint", options);
  };
  const auto refusal = [](const SavedJob& saved, const Job& now) -> std::string {
    try {
      saved.verify_features(now, fit_features(now));
      return "";
    } catch (const FailedPreconditionError& error) {
      return error.what();
    }
  };
  const Job latest = job(text(kDate, "dates = {day = 'age'}\n"));
  const auto fixed = [&](const std::string& reference) {
    return job(text(kDate, "dates = {day = {parts = 'age', reference = " + reference + "}}\n"));
  };
  folder_.write("a.csv", "2024-03-01,1\n2024-03-05,0\n");
  const SavedJob strict = saved_by(latest);
  const SavedJob lenient = saved_by(latest, {.new_data = true});
  const SavedJob of_fixed = saved_by(fixed("2024-04-01"), {.new_data = true});
  EXPECT_EQ(refusal(strict, latest), "");
  folder_.write("a.csv", "2024-03-01,1\n2024-03-06,0\n");
  EXPECT_THAT(
      refusal(strict, latest),
      AllOf(HasSubstr("column \"day\": ages are counted to 2024-03-05 in the checkpoint and "
                      "to 2024-03-06 in the data now"),
            HasSubstr("--new-data")));
  EXPECT_EQ(refusal(lenient, latest), "");
  const FittedFeatures kept = lenient.features(latest, fit_features(latest));
  EXPECT_EQ(date_text(*kept.columns.front().numerics.front().days_until), "2024-03-05");
  EXPECT_EQ(refusal(of_fixed, fixed("2024-04-01")), "");
  EXPECT_THAT(refusal(of_fixed, fixed("2024-04-02")),
              AllOf(HasSubstr("days to 2024-04-01"), HasSubstr("is of another model")));
}

}  // namespace
}  // namespace cairn::tools
