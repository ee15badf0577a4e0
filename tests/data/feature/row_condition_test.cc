// Conditions on rows, and the rows of CSV files that they leave.
#include "data/feature/row_condition.h"

#include <gmock/gmock.h>

#include "data/stage/dataset_wire.h"
#include "data/stage/fit.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<ConditionColumn> kColumns = {
    {"day", DType::kInt32},          {"delay", DType::kFloat32},
    {"carrier", DType::kString},     {"late", DType::kBool},
    {"tags", DType::kString, true},  {"year", DType::kInt32, false, true},
    {"time of day", DType::kFloat32}};

bool holds(const std::string& text, std::string_view cell) {
  return RowCondition(text, kColumns).holds(cell);
}
std::string error_in(const std::string& text) {
  return error_of([&] { RowCondition(text, kColumns); });
}

TEST(RowCondition, ComparesNumbers) {
  EXPECT_TRUE(holds("day == 5", "5"));
  EXPECT_FALSE(holds("day != 5", "5"));
  EXPECT_TRUE(holds("delay<=-1.5", "-1.5"));
  EXPECT_FALSE(holds("delay < -1.5", "-1.5"));
  EXPECT_TRUE(holds("delay > 1e2", "100.5"));
  EXPECT_TRUE(holds("delay >= 100", "1e2"));
  EXPECT_TRUE(holds("delay == 1", "nan") && holds("delay != 1", "nan"));  // bad: refused later
  EXPECT_TRUE(holds("late == 1", "true"));
  EXPECT_TRUE(holds("'time of day' > 12", "13"));
}

TEST(RowCondition, TakesARemainderThatIsNeverNegative) {
  EXPECT_TRUE(holds("day % 5 == 0", "10"));
  EXPECT_TRUE(holds("day%5 == 4", "-1"));
  EXPECT_FALSE(holds("day % 5 >= 2", "6"));
}

TEST(RowCondition, ComparesTextsByTheirBytes) {
  EXPECT_TRUE(holds("carrier == \"UA\"", "UA"));
  EXPECT_FALSE(holds("carrier == 'UA'", "ua"));
  EXPECT_TRUE(holds("carrier < '2013-06'", "2013-05-31"));
  EXPECT_TRUE(holds("carrier in ['UA', \"AA\"]", "AA"));
  EXPECT_FALSE(holds("carrier in [\"UA\",\"AA\"]", "B6"));
  EXPECT_TRUE(holds("day in [1, 2 ,3]", "3"));
}

TEST(RowCondition, LetsACellThatIsNoNumberPassForItsColumnToComplain) {
  EXPECT_TRUE(holds("day == 5", "five"));
  EXPECT_TRUE(holds("late == 1", "perhaps"));
}

TEST(RowCondition, NamesTheColumnThatWasMeant) {
  EXPECT_THAT(error_in("dya > 1"), AllOf(HasSubstr("\"dya > 1\", character 1"),
                                         HasSubstr("no column \"dya\"; did you mean \"day\"?")));
  EXPECT_THAT(error_in("year == 2013"), HasSubstr("\"year\" is read past"));
  EXPECT_THAT(error_in("tags == 'a'"), HasSubstr("only `known` can be asked"));
  EXPECT_TRUE(holds("tags known", "a|b"));
}

TEST(RowCondition, NamesThePlaceAtWhichItIsNone) {
  EXPECT_THAT(error_in(""), HasSubstr("character 1 (its end): the name of a column"));
  EXPECT_THAT(error_in("day"), HasSubstr("character 4 (its end): ==, !=, <, <=, >, >=, %, in"));
  EXPECT_THAT(error_in("day = 5"), HasSubstr("character 5: ==, !="));
  EXPECT_THAT(error_in("day % 0 == 1"), HasSubstr("character 7: a whole number from 1 on"));
  EXPECT_THAT(error_in("day % 5 in [1]"), HasSubstr("character 9: =="));
  EXPECT_THAT(error_in("day == five"), HasSubstr("character 8: a number is wanted"));
  EXPECT_THAT(error_in("day == \"5\""), HasSubstr("\"day\" is int32"));
  EXPECT_THAT(error_in("carrier == UA"), HasSubstr("character 12: a text in quotes is wanted"));
  EXPECT_THAT(error_in("carrier % 2 == 0"), HasSubstr("a text in quotes is wanted"));
  EXPECT_THAT(error_in("carrier == 'UA"), HasSubstr("the quote is not closed"));
  EXPECT_THAT(error_in("day in 1"), HasSubstr("a list in brackets"));
  EXPECT_THAT(error_in("day in [1 2]"), HasSubstr("character 11: a comma or ]"));
  EXPECT_THAT(error_in("day in []"), HasSubstr("a number is wanted"));
  EXPECT_THAT(error_in("day > 1 and day < 5"), HasSubstr("character 9: the end is wanted"));
  EXPECT_THAT(error_in("day knownly"), HasSubstr("character 5: =="));
}

// ---- rows of CSV files ----

CsvSchema flights(std::vector<std::string> where) {
  CsvSchema schema;
  schema.columns = {{.name = "day", .dtype = DType::kInt64},
                    {.name = "carrier", .dtype = DType::kString},
                    {.name = "delay"}};
  schema.header = true;
  schema.unknown = "NA";
  schema.where = std::move(where);
  return schema;
}

constexpr const char* kFlights =
    "day,carrier,delay\n1,UA,7\n2,AA,NA\n3,,20\n4,UA,x\n5,B6,-3\n6,UA,\n7,UA,30\n";

// Line 5's delay is no number: it is not parsed if day or carrier leave the row out.
TEST(CsvConditions, LeaveRowsOutBeforeTheirCellsAreParsed) {
  const TempFolder folder;
  const std::string file = folder.write("f", kFlights);
  EXPECT_THAT(values_of(Dataset::csv(file, flights({"day != 4", "delay known"}))),
              ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(values_of(Dataset::csv(file, flights({"day % 2 == 1", "carrier == 'UA'"}))),
              ElementsAre(1, 7));
  EXPECT_THAT(error_of([&] { values_of(Dataset::csv(file, flights({"delay > 0"}))); }),
              HasSubstr("f:5:6: column \"delay\": \"x\" is not of type float32"));
}

TEST(CsvConditions, AreNotFulfilledByACellWhoseValueIsUnknown) {
  const TempFolder folder;
  CsvSchema schema = flights({"delay != 7", "day != 4"});
  schema.columns[2].default_value = "0";
  EXPECT_THAT(values_of(Dataset::csv(folder.write("f", kFlights), schema)), ElementsAre(3, 5, 7));
}

TEST(CsvConditions, CountFitAndShardWithTheRowsThatAreLeft) {
  const TempFolder folder;
  const Dataset data =
      Dataset::csv(folder.write("f", kFlights), flights({"day != 4", "delay known"}));
  LinesRead lines;
  EXPECT_EQ(cardinality(data, &lines), 4);
  EXPECT_EQ(lines.filtered, 3);
  const Fit found = fit(data, {.numeric = {{.column = "delay"}}, .vocabularies = {"carrier"}});
  EXPECT_EQ(found.examples, 4);
  EXPECT_EQ(found.lines.filtered, 3);
  EXPECT_FLOAT_EQ(found.numeric[0].mean, 13.5f);
  EXPECT_EQ(found.vocabularies[0], (std::vector<std::string>{"UA", "", "B6"}));
  EXPECT_THAT(values_of(data.shard(2, 0)), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(values_of(data.shard(2, 1)), ElementsAre());
  EXPECT_THAT(values_of(data.skip(2)), ElementsAre(5, 7));
}

// The condition's column is read by no feature.
TEST(CsvConditions, ReadColumnsThatNoFeatureReads) {
  const TempFolder folder;
  CsvSchema good = flights({"day < 4", "delay >= 20"});
  const Dataset features =
      Dataset::csv(folder.write("f", kFlights), good).features({FeatureColumn::as_is("day")});
  EXPECT_THAT(values_of(features), ElementsAre(3));
}

TEST(CsvConditions, ResumeAtTheRowBehindTheLast) {
  const TempFolder folder;
  const Dataset data =
      Dataset::csv(folder.write("f", kFlights), flights({"day != 4", "delay known"}));
  const auto iterator = open(data);
  iterator->next();
  iterator->next();
  const auto again = open(data, iterator->state());
  EXPECT_EQ(again->next()->front().item<std::int64_t>(), 5);
}

TEST(CsvConditions, TravelWithTheDescription) {
  const TempFolder folder;
  CsvSchema schema = flights({"day != 4"});
  schema.label = {.column = "delay", .skip_unknown = true};
  const Dataset data = Dataset::csv(folder.write("f", kFlights), schema);
  EXPECT_THAT(values_of(parse_dataset(serialize(data))), ElementsAre(1, 3, 5, 7));
}

TEST(CsvConditions, AreRefusedWithTheDescription) {
  EXPECT_THAT(error_of([&] {
                Dataset::csv("f", flights({"day > 1", "dela > 1"}));
              }),
              HasSubstr("did you mean \"delay\"?"));
}

TEST(CsvLabels, ThatAreUnknownLeaveTheirRowsOutAndAreCountedApart) {
  const TempFolder folder;
  CsvSchema schema = flights({"day != 4", "day != 6"});
  schema.label = {.column = "delay", .skip_unknown = true};
  LinesRead lines;
  EXPECT_EQ(cardinality(Dataset::csv(folder.write("f", kFlights), schema), &lines), 4);
  EXPECT_EQ(lines.filtered, 2);
  EXPECT_EQ(lines.unlabelled, 1);
}

TEST(CsvLabels, AreThePlacesOfTheirTextsInTheListOfClasses) {
  const TempFolder folder;
  CsvSchema schema = flights({"day < 3"});
  schema.label = {.column = "carrier", .classes = {"AA", "UA"}};
  schema.columns[2].skip = true;
  const Dataset data = Dataset::csv(folder.write("f", kFlights), schema);
  EXPECT_EQ(to_text(open(data.batch(2))->next().value()), "int64[2]{1, 2} int64[2]{1, 0} ");
  schema.where = {};
  EXPECT_THAT(error_of([&] { values_of(Dataset::csv(folder.write("f", kFlights), schema)); }),
              HasSubstr("f:4:3: column \"carrier\": \"\" is none of the label's classes"));
}

TEST(CsvLabels, AreRefusedWhereTheyMakeNoSense) {
  CsvSchema schema = flights({});
  schema.label = {.column = "carrier", .positive = {"AA"}, .classes = {"AA", "UA"}};
  EXPECT_THAT(error_of([&] { Dataset::csv("f", schema); }), HasSubstr("give one of them"));
  schema.label = {.column = "carrier", .classes = {"AA", "UA", "AA"}};
  EXPECT_THAT(error_of([&] { Dataset::csv("f", schema); }), HasSubstr("two classes are \"AA\""));
  schema.label = {.skip_unknown = true};
  EXPECT_THAT(error_of([&] { Dataset::csv("f", schema); }), HasSubstr("there is none"));
}

}  // namespace
}  // namespace cairn::testing
