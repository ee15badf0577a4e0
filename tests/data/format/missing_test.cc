// Cells of CSV files that have no value: a default, an indicator, or an error.
#include <gmock/gmock.h>

#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CsvSchema people() {
  CsvSchema schema;
  schema.columns = {
      {.name = "age", .default_value = "-1", .missing_indicator = true},
      {.name = "city", .dtype = DType::kString, .missing_indicator = true},
      {.name = "tags", .dtype = DType::kString, .separator = '|', .missing_indicator = true},
      {.name = "label"}};
  schema.label = {.column = "label"};
  schema.unknown = "?";
  return schema;
}

constexpr const char* kPeople = "41,Bergen,a|b,1\n?,,,0\n,?,c,1\n7,Oslo,?,0\n";

TEST(MissingCells, HaveADefaultAndAnIndicator) {
  const TempFolder folder;
  const Dataset data = Dataset::csv(folder.write("p", kPeople), people());
  EXPECT_EQ(data.element_spec().columns[1], (ColumnSpec{"age/missing", {DType::kFloat32, {}}}));
  EXPECT_EQ(to_text(open(data.batch(4))->next().value()),
            "float32[4]{41, -1, -1, 7} float32[4]{0, 1, 1, 0} "
            "string[4]{\"Bergen\"\"\"\"?\"\"Oslo\"} float32[4]{0, 1, 1, 0} "
            "string[4]{\"a\"\"b\"\"c\"\"?\"} int64[5]{0, 2, 2, 3, 4} float32[4]{0, 1, 0, 1} "
            "float32[4]{1, 0, 1, 0} ");
}

// Directly above the source, which makes features of text, and above other stages.
TEST(MissingCells, AreInputsOfFeatures) {
  const TempFolder folder;
  const Dataset data = Dataset::csv(folder.write("p", kPeople), people());
  const std::vector<FeatureColumn> features = {
      FeatureColumn::numeric({{"age/missing"}, {"city/missing"}, {"age"}}),
      FeatureColumn::bucketised("tags/missing", {0.5f})};
  const std::string text = to_text(open(data.features(features).batch(4))->next().value());
  EXPECT_EQ(text,
            "float32[4, 3]{0, 0, 41, 1, 1, -1, 1, 1, -1, 0, 0, 7} int64[4]{0, 1, 0, 1} "
            "float32[4]{1, 0, 1, 0} ");
  EXPECT_EQ(to_text(open(data.take(4).features(features).batch(4))->next().value()), text);
  const std::vector<FeatureColumn> alone = {FeatureColumn::numeric({{"city/missing"}})};
  EXPECT_EQ(to_text(open(data.features(alone).batch(4))->next().value()),
            "float32[4, 1]{0, 1, 1, 0} float32[4]{1, 0, 1, 0} ");
}

// Rows beside bad ones are decoded twice.
TEST(MissingCells, StayMissingWhereARowIsLeftOut) {
  const TempFolder folder;
  const Dataset data = Dataset::csv(folder.write("p", "?,x,a,1\nbad,x,a,1\n-1,x,a,0\n"), people(),
                                    {.on_error = OnError::kSkipAndCount});
  const Element all = open(data.batch(3))->next().value();
  EXPECT_THAT(all[0].values<float>(), ElementsAre(-1, -1));
  EXPECT_THAT(all[1].values<float>(), ElementsAre(1, 0));
}

TEST(MissingCells, HaveTextsOfTheirColumn) {
  const TempFolder folder;
  CsvSchema schema = people();
  schema.columns[0].unknown = {"NA", "-"};
  const Dataset data = Dataset::csv(folder.write("p", "NA,x,a,1\n-,x,a,1\n5,NA,a,0\n"), schema);
  const Element all = open(data.batch(3))->next().value();
  EXPECT_THAT(all[0].values<float>(), ElementsAre(-1, -1, 5));
  EXPECT_THAT(all[1].values<float>(), ElementsAre(1, 1, 0));
}

TEST(MissingCells, AreErrorsWithoutADefault) {
  const TempFolder folder;
  CsvSchema schema = people();
  schema.columns[0].default_value = std::nullopt;
  const std::string path = folder.write("p", kPeople);
  EXPECT_THAT(error_of([&] { read_all(Dataset::csv(path, schema)); }),
              HasSubstr(path + ":2:1: column \"age\": the value is unknown"));
}

TEST(MissingCells, OfTheLabelAndUnderAUsedNameAreRefused) {
  CsvSchema schema = people();
  schema.columns[3].missing_indicator = true;
  EXPECT_THAT(error_of([&] { Dataset::csv("p", schema); }), HasSubstr("missing_indicator"));
  schema = people();
  schema.columns[1].name = "age/missing";
  EXPECT_THAT(error_of([&] { Dataset::csv("p", schema); }),
              HasSubstr("two columns are named \"age/missing\""));
}

}  // namespace
}  // namespace cairn::testing
