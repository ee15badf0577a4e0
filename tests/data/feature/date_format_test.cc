// Dates in the cells of CSV files, and what is made of them.
#include "data/feature/date_format.h"

#include <gmock/gmock.h>

#include <cmath>

#include "data/stage/dataset_wire.h"
#include "data/stage/fit.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// -1: it is refused.
std::int64_t seconds_of(const std::string& format, std::string_view text) {
  std::int64_t seconds = 0;
  return DateFormat(format).parse(text, seconds) ? seconds : -1;
}
std::string refusal_of(const std::string& format) {
  return error_of([&] { DateFormat{format}; });
}

TEST(DateFormat, ReadsSecondsSince1970InUtc) {
  EXPECT_EQ(seconds_of("%Y-%m-%d", "1970-01-01"), 0);
  EXPECT_EQ(seconds_of("%Y-%m-%d", "2024-02-29"), 1709164800);
  EXPECT_EQ(seconds_of("%Y-%m-%d %H:%M:%S", "2024-02-29 23:59:59"), 1709251199);
  EXPECT_EQ(seconds_of("%Y-%m-%dT%H:%M:%SZ", "1969-12-31T00:00:00Z"), -kSecondsPerDay);
  EXPECT_EQ(seconds_of("%d %b %y", "01 jan 70"), 0);
  EXPECT_EQ(seconds_of("%d-%b-%y", "1-MAR-68"), seconds_of("%Y/%m/%d", "2068/3/1"));
  EXPECT_EQ(seconds_of("%Y-%j", "2024-366"), seconds_of("%Y-%m-%d", "2024-12-31"));
  EXPECT_EQ(seconds_of("%Y%m%d%H", "2024022905"), 1709164800 + 5 * 3600);
  EXPECT_EQ(seconds_of("%Y-%m", "2024-02"), seconds_of("%Y-%m-%d", "2024-02-01"));
  EXPECT_EQ(seconds_of("100%% %Y", "100% 1970"), 0);
  EXPECT_EQ(seconds_of("%Y-%m-%d", "0001-01-01"), -62135596800);
  EXPECT_EQ(seconds_of("%Y-%m-%d", "9999-12-31"), 253402214400);
}

TEST(DateFormat, RefusesWhatDoesNotMatchOrIsNoDay) {
  for (const char* text : {"", "2024-02", "2024-02-3 ", "24-02-03", "2024-02-003", "2024/02/03",
                           "2024-00-03", "2024-13-03", "2024-02-30", "2023-02-29", "2024-04-31",
                           "-024-02-03", "+024-02-03", "0000-02-03", "2024-02-03T00:00:00"})
    EXPECT_EQ(seconds_of("%Y-%m-%d", text), -1) << text;
  EXPECT_EQ(seconds_of("%Y-%j", "2023-366"), -1);
  EXPECT_EQ(seconds_of("%Y-%m-%d %H:%M", "2024-02-03 24:00"), -1);
  EXPECT_EQ(seconds_of("%d %b %Y", "03 mai 2024"), -1);
}

// "2024111" would be a day of January or of November.
TEST(DateFormat, ANumberThatTouchesAnotherHasItsFullWidth) {
  EXPECT_EQ(seconds_of("%Y%m%d", "2024111"), -1);
  EXPECT_EQ(seconds_of("%m/%d/%Y", "1/1/1970"), 0);
  EXPECT_EQ(seconds_of("%Y-%m-%d1", "2024-2-11"), -1);
}

TEST(DateFormat, OfWhichNoDateCanBeMadeIsRefusedWithTheDirectives) {
  EXPECT_THAT(refusal_of("%Y-%m-%D"),
              AllOf(HasSubstr("the date format \"%Y-%m-%D\" has the directive \"%D\""),
                    HasSubstr("there are %Y, %y, %m, %b, %d, %j, %H, %M, %S and %%")));
  EXPECT_THAT(refusal_of("%Y-%"), HasSubstr("the directive \"%\""));
  EXPECT_THAT(refusal_of("%m-%d"), HasSubstr("has no year"));
  EXPECT_THAT(refusal_of("%Y %d"), HasSubstr("has a day and no month"));
  EXPECT_THAT(refusal_of("%Y %m %b"), HasSubstr("twice"));
  EXPECT_THAT(refusal_of("%Y %j %m"), HasSubstr("one of them"));
  EXPECT_THAT(refusal_of("%Y %M"), HasSubstr("%H:%M:%S"));
  EXPECT_THAT(refusal_of(std::string(101, 'x')), HasSubstr("at most 100"));
}

TEST(DateParts, AreIdsFromMondayMidnightAndJanuaryOn) {
  const auto parts = [](std::int64_t seconds) {
    return std::array{part_of_date(DatePart::kDayOfWeek, seconds),
                      part_of_date(DatePart::kHour, seconds),
                      part_of_date(DatePart::kMonth, seconds)};
  };
  EXPECT_THAT(parts(0), ElementsAre(3, 0, 0));            // Thursday
  EXPECT_THAT(parts(-1), ElementsAre(2, 23, 11));         // Wednesday
  EXPECT_THAT(parts(1709164799), ElementsAre(2, 23, 1));  // 2024-02-28
  EXPECT_THAT(parts(1709251200), ElementsAre(4, 0, 2));   // 2024-03-01, a Friday
}

// Numbers of other formats need not be dates at all.
TEST(DateParts, OfAnyNumberLieInTheirTables) {
  for (const std::int64_t seconds : {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 86399})
    for (const DatePart part : {DatePart::kDayOfWeek, DatePart::kHour, DatePart::kMonth}) {
      EXPECT_GE(part_of_date(part, seconds), 0);
      EXPECT_LT(part_of_date(part, seconds), date_part_ids(part));
    }
}

TEST(DateText, HasATimeWhereItIsNotMidnight) {
  EXPECT_EQ(date_text(1709164800), "2024-02-29");
  EXPECT_EQ(date_text(-1), "1969-12-31 23:59:59");
  EXPECT_EQ(date_text(INT64_MIN), "-9223372036854775808 s");
}

// ---- columns ----

CsvSchema events() {
  CsvSchema schema;
  schema.columns = {{.name = "day", .dtype = DType::kInt64, .date_format = "%Y-%m-%d"}, {"label"}};
  schema.label = {.column = "label"};
  return schema;
}

std::string read(const std::string& text, const CsvSchema& schema, CsvOptions options = {}) {
  const TempFolder folder;
  const Dataset data = Dataset::csv(folder.write("p", text), schema, options);
  const Dataset arrived = parse_dataset(serialize(data));
  EXPECT_EQ(fingerprint(arrived), fingerprint(data));
  return to_text(open(arrived.batch(9))->next().value());
}
std::string error_in(const std::string& text, const CsvSchema& schema) {
  return error_of([&] { read(text, schema); });
}

TEST(DateColumns, AreInt64SecondsHereAndWhereTheDescriptionArrives) {
  EXPECT_EQ(read("1970-01-02,1\n2024-02-29,0\n", events()),
            "int64[2]{86400, 1709164800} float32[2]{1, 0} ");
}

TEST(DateColumns, ACellThatIsNoDateIsABadOne) {
  EXPECT_THAT(error_in("1970-01-02,1\n29.2.2024,0\n", events()),
              AllOf(HasSubstr("p:2:1: column \"day\": \"29.2.2024\" is not a date of the format "
                              "\"%Y-%m-%d\""),
                    HasSubstr("OnError::kSkipAndCount")));
  EXPECT_THAT(error_in("2023-02-30,1\n", events()),
              HasSubstr("p:1:1: column \"day\": \"2023-02-30\" is no day of the calendar"));
  EXPECT_EQ(read("2023-02-30,1\n1970-01-02,0\n", events(), {.on_error = OnError::kSkipAndCount}),
            "int64[1]{86400} float32[1]{0} ");
}

TEST(DateColumns, AnUnknownCellHasTheDefaultOrIsABadOne) {
  CsvSchema schema = events();
  EXPECT_THAT(error_in(",1\n", schema), HasSubstr("CsvColumn::default_value"));
  schema.columns[0].default_value = "1970-01-03";
  schema.columns[0].missing_indicator = true;
  EXPECT_EQ(read(",1\n1970-01-02,0\n", schema),
            "int64[2]{172800, 86400} float32[2]{1, 0} float32[2]{1, 0} ");
  schema.columns[0].default_value = "0";
  EXPECT_THAT(error_in(",1\n", schema), HasSubstr("is not a date of the format %Y-%m-%d"));
}

TEST(DateColumns, ThatMakeNoSenseAreRefused) {
  CsvSchema schema = events();
  schema.columns[0].date_format = "%Q";
  EXPECT_THAT(error_in("x,1\n", schema), HasSubstr("column \"day\": the date format \"%Q\""));
  schema = events();
  schema.columns[0].dtype = DType::kInt32;
  EXPECT_THAT(error_in("x,1\n", schema), HasSubstr("has one int64 per cell, and this is int32"));
  schema = events();
  schema.label = {.column = "day", .binary = true};
  EXPECT_THAT(error_in("x,1\n", schema), HasSubstr("dates are no label of two classes"));
}

TEST(DateColumns, AreComparedInConditionsByDatesOfTheirFormat) {
  const auto days_where = [&](const std::string& condition) {
    CsvSchema schema = events();
    schema.where = {condition};
    return read("1970-01-02,1\n1970-01-03,2\n1970-01-05,3\n", schema);
  };
  EXPECT_EQ(days_where("day < '1970-01-03'"), "int64[1]{86400} float32[1]{1} ");
  EXPECT_EQ(days_where("day in ['1970-01-03', '1970-01-05']"),
            "int64[2]{172800, 345600} float32[2]{2, 3} ");
  EXPECT_EQ(days_where("day % 172800 == 0"), "int64[2]{172800, 345600} float32[2]{2, 3} ");
  EXPECT_THAT(error_of([&] { days_where("day < '3.1.1970'"); }),
              HasSubstr("character 7: \"3.1.1970\" is not a date of the format"));
  EXPECT_THAT(error_of([&] { days_where("day < yesterday"); }),
              HasSubstr("a date in quotes is wanted, of the format \"%Y-%m-%d\""));
}

// ---- features ----

TEST(DateFeatures, ArePartsAndAgesOverTheSourceAndOverOtherStages) {
  const TempFolder folder;
  const Dataset data = Dataset::csv(folder.write("p", "1970-01-01,1\n1970-02-03,0\n"), events());
  const std::vector<FeatureColumn> features = {
      FeatureColumn::date_part("day", DatePart::kDayOfWeek),
      FeatureColumn::date_part("day", DatePart::kMonth, "m"),
      FeatureColumn::numeric({{.column = "day", .stddev = 2, .days_until = 10 * kSecondsPerDay}})};
  const std::string wanted =
      "int64[2]{3, 1} int64[2]{0, 1} float32[2, 1]{5, -11.5} float32[2]{1, 0} ";
  for (const Dataset& made : {data.features(features), data.take(2).features(features)})
    EXPECT_EQ(to_text(open(parse_dataset(serialize(made)).batch(2))->next().value()), wanted);
  EXPECT_EQ(data.features(features).element_spec().columns[0].name, "day_day_of_week");
  EXPECT_EQ(features[0].ids(), 7);
}

TEST(DateFeatures, WantSecondsOfInt64) {
  const Dataset data = Dataset::from_tensor_slices(
      {{"day", Tensor::of<std::int32_t>({1}, std::vector<std::int32_t>{1})}});
  EXPECT_THAT(
      error_of([&] { data.features({FeatureColumn::date_part("day", DatePart::kHour)}); }),
      AllOf(HasSubstr("feature \"day_hour\" wants dates, int64 seconds"), HasSubstr("int32")));
  EXPECT_THAT(error_of([&] {
                data.features({FeatureColumn::numeric({{.column = "day", .days_until = 0}})});
              }),
              HasSubstr("wants dates"));
  EXPECT_THAT(error_of([&] { fit(data, {.ages = {{"day"}}}); }), HasSubstr("an age of \"day\""));
}

// Whole days, of which float32 would lose hours if it held seconds.
TEST(DateFeatures, AnAgeIsFittedToTheLatestDateOrToTheOneThatIsAskedFor) {
  const TempFolder folder;
  const Dataset data =
      Dataset::csv(folder.write("p", "2024-03-01,1\n2024-03-05,0\n2024-03-03,0\n"), events());
  const Fit found = fit(data, {.ages = {{"day"}, {"day", 1709164800}}});
  EXPECT_EQ(date_text(found.ages[0].days_until.value()), "2024-03-05");
  EXPECT_FLOAT_EQ(found.ages[0].mean, 2);
  EXPECT_FLOAT_EQ(found.ages[0].stddev, std::sqrt(8.0f / 3));
  EXPECT_EQ(date_text(found.ages[1].days_until.value()), "2024-02-29");
  EXPECT_FLOAT_EQ(found.ages[1].mean, -3);
  const auto given = fit_numeric(data, {{.column = "day", .days_until = 1709164800}});
  EXPECT_FLOAT_EQ(given[0].mean, -3);
  EXPECT_FLOAT_EQ(given[0].stddev, found.ages[0].stddev);
}

}  // namespace
}  // namespace cairn::testing
