// Criteo's own lines: tabs, a label, 13 counts, 26 hexadecimal ids, and cells without a value.
#include <gmock/gmock.h>

#include "data/format/criteo_like.h"
#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

// Two lines of the Kaggle challenge's shape: nearly full, and nearly empty.
std::string two_clicks() {
  std::string full = "1", empty = "0";
  for (int i = 1; i <= 13; ++i) {
    full += i == 12 ? "\t" : "\t" + std::to_string(i == 2 ? -1 : i * 10);
    empty += "\t";
  }
  for (int i = 1; i <= 26; ++i) {
    char id[16];
    std::snprintf(id, sizeof id, "\t%08x", 0xab000000u + static_cast<unsigned>(i));
    full += i == 26 ? "\t" : id;
    empty += i == 3 ? id : "\t";
  }
  return full + "\n" + empty + "\n";
}

TEST(CriteoTsv, EmptyCellsHaveTheirDefaults) {
  const TempFolder folder;
  const Dataset data =
      Dataset::csv(folder.write("c.gz", as_gzip(two_clicks())), criteo_tsv_schema());
  const ElementSpec& spec = data.element_spec();
  EXPECT_EQ(spec.label, "label");
  EXPECT_EQ(spec.columns.size(), 40u);
  const Element both = open(data.batch(2))->next().value();
  const auto counts = [&](const char* name) {
    const auto values = both[spec.find(name)].values<std::int32_t>();
    return std::vector<std::int32_t>(values.begin(), values.end());
  };
  EXPECT_EQ(counts("I1"), (std::vector{10, 0}));
  EXPECT_EQ(counts("I2"), (std::vector{-1, 0}));
  EXPECT_EQ(counts("I12"), (std::vector{0, 0}));
  EXPECT_EQ(counts("I13"), (std::vector{130, 0}));
  const auto ids = [&](const char* name) {
    const auto values = both[spec.find(name)].string_values();
    return std::vector<std::string>(values.begin(), values.end());
  };
  EXPECT_EQ(ids("C1"), (std::vector<std::string>{"ab000001", ""}));
  EXPECT_EQ(ids("C3"), (std::vector<std::string>{"ab000003", "ab000003"}));
  EXPECT_EQ(ids("C26"), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(both[spec.find("label")].values<float>()[0], 1);
}

TEST(CriteoTsv, EmptyCountsMayBeTold) {
  const TempFolder folder;
  CsvSchema schema = criteo_tsv_schema();
  for (CsvColumn& column : schema.columns) column.missing_indicator = column.name == "I12";
  const Dataset data =
      Dataset::csv(folder.write("c", two_clicks()), schema)
          .features(
              {FeatureColumn::numeric({{"I12"}, {"I12/missing"}, {.column = "I1", .log1p = true}}),
               FeatureColumn::hashed("C26", 100)});
  const Element both = open(data.batch(2))->next().value();
  const auto numbers = both[0].values<float>();
  EXPECT_EQ(std::vector<float>(numbers.begin(), numbers.end()),
            (std::vector<float>{0, 1, std::log1p(10.0f), 0, 1, 0}));
}

TEST(CriteoTsv, ALineThatIsCutIsToldByItsPlace) {
  const TempFolder folder;
  std::string text = two_clicks();
  text.resize(text.size() - 10);
  const std::string path = folder.write("c", text);
  EXPECT_THAT(error_of([&] { read_all(Dataset::csv(path, criteo_tsv_schema())); }),
              HasSubstr(path + ":2: a short row: "));
}

}  // namespace
}  // namespace cairn::testing
