// The public data sets of examples/data, each read in a few lines, against what their READMEs say.
#include <gmock/gmock.h>

#include <set>

#include "examples/msweb.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;

const std::string kSets = "examples/data/";  // tests run in the project's root

// All of a dataset as one batch, by column.
class Table {
 public:
  explicit Table(const Dataset& dataset)
      : spec_(dataset.element_spec()), all_(open(dataset.batch(1 << 20))->next().value()) {}
  template <typename T>
  std::span<const T> of(const std::string& name) const {
    return all_[spec_.find(name)].values<T>();
  }
  std::span<const std::string> texts(const std::string& name) const {
    return all_[spec_.find(name)].string_values();
  }
  std::int64_t rows(const std::string& name) const { return all_[spec_.find(name)].shape()[0]; }
  std::int64_t ones(const std::string& name) const {
    const auto values = of<float>(name);
    return std::count(values.begin(), values.end(), 1.0f);
  }

 private:
  ElementSpec spec_;
  Element all_;
};

template <typename Values>
std::size_t distinct(const Values& values) {
  return std::set(values.begin(), values.end()).size();
}

TEST(Sets, AgaricusIsLibsvm) {
  const LibsvmSchema schema{.label = {.column = "poisonous", .binary = true}, .dimension = 126};
  const Table train(Dataset::libsvm(kSets + "libsvm/agaricus.txt.train.gz", schema));
  const Table test(Dataset::libsvm(kSets + "libsvm/agaricus.txt.test.gz", schema));
  EXPECT_EQ(train.rows("poisonous"), 6513);
  EXPECT_EQ(train.ones("poisonous"), 3140);
  EXPECT_EQ(test.rows("poisonous"), 1611);
  EXPECT_EQ(test.ones("poisonous"), 776);
  EXPECT_EQ(train.rows("ids"), 6513 * 22);
  EXPECT_THAT(train.of<std::int64_t>("ids").first(4), ElementsAre(2, 9, 10, 20));
  EXPECT_EQ(train.ones("values"), 6513 * 22);
}

TEST(Sets, A9aIsLibsvmWithSignedLabels) {
  const LibsvmSchema schema{.label = {"income", {"+1"}, {"-1"}}, .dimension = 123};
  const Table train(Dataset::libsvm(kSets + "libsvm/a9a.gz", schema));
  const Table test(Dataset::libsvm(kSets + "libsvm/a9a.t.gz", schema));
  EXPECT_EQ(train.rows("income"), 32'561);
  EXPECT_EQ(train.ones("income"), 7841);
  EXPECT_EQ(test.rows("income"), 16'281);
  EXPECT_EQ(test.ones("income"), 3846);
  EXPECT_NEAR(static_cast<double>(train.rows("ids")) / 32'561, 13.87, 0.005);
  EXPECT_LE(std::ranges::max(test.of<std::int64_t>("ids")), 121);  // index 122
}

TEST(Sets, MswebIsRaggedAreasPerUser) {
  const TempFolder folder;
  const Table train(msweb(kSets + "msweb/anonymous-msweb.data.gz", folder.path("train")));
  const Table test(msweb(kSets + "msweb/anonymous-msweb.test.gz", folder.path("test")));
  EXPECT_EQ(train.rows("user"), 32'711);
  EXPECT_EQ(train.rows("areas"), 98'654);
  EXPECT_EQ(test.rows("user"), 5000);
  EXPECT_EQ(test.rows("areas"), 15'191);
  EXPECT_EQ(distinct(train.of<std::int64_t>("areas")), 285u);
  EXPECT_THAT(train.of<std::int64_t>("user").first(2), ElementsAre(10'001, 10'002));
  EXPECT_THAT(train.of<std::int64_t>("areas").first(5), ElementsAre(1000, 1001, 1002, 1001, 1003));
}

TEST(Sets, SmsSpamIsTabsAndNoQuotes) {
  CsvSchema schema;
  schema.columns = {{.name = "label"}, {.name = "text", .dtype = DType::kString}};
  schema.label = {"label", {"spam"}, {"ham"}};
  schema.delimiter = '\t';
  schema.quote = 0;
  const Table sms(Dataset::csv(kSets + "sms-spam/SMSSpamCollection.gz", schema));
  EXPECT_EQ(sms.rows("label"), 5574);
  EXPECT_EQ(sms.ones("label"), 747);
  EXPECT_EQ(sms.texts("text")[1], "Ok lar... Joking wif u oni...");
}

TEST(Sets, TinyShakespeareIsLinesOfText) {
  const Table plays(Dataset::text_lines(kSets + "tinyshakespeare/input.txt.gz"));
  EXPECT_EQ(plays.rows("line"), 40'000);
  std::size_t characters = 40'000;  // line ends
  std::set<char> different{'\n'};
  for (const std::string& line : plays.texts("line")) {
    characters += line.size();
    different.insert(line.begin(), line.end());
  }
  EXPECT_EQ(characters, 1'115'394u);
  EXPECT_EQ(different.size(), 65u);
  EXPECT_EQ(plays.texts("line")[0], "First Citizen:");
}

TEST(Sets, OpenBanditIsCsvWithAHeaderOfWhichAFewColumnsAreWanted) {
  CsvSchema schema;
  schema.columns = {{.name = "item_id", .dtype = DType::kInt64},
                    {.name = "position", .dtype = DType::kInt64},
                    {.name = "click"},
                    {.name = "propensity_score"},
                    {.name = "user_feature_0", .dtype = DType::kString}};
  schema.label = {.column = "click", .binary = true};
  schema.header = true;
  const std::vector<std::pair<std::string, std::pair<std::int64_t, std::size_t>>> logs = {
      {"random.men", {46, 34}},
      {"random.women", {46, 46}},
      {"bts.men", {69, 34}},
      {"bts.women", {46, 46}}};
  for (const auto& [name, facts] : logs) {
    const Table log(Dataset::csv(kSets + "open-bandit-small/" + name + ".csv.gz", schema));
    EXPECT_EQ(log.rows("click"), 10'000);
    EXPECT_EQ(log.ones("click"), facts.first) << name;
    EXPECT_LE(distinct(log.of<std::int64_t>("item_id")), facts.second);
    EXPECT_EQ(distinct(log.of<std::int64_t>("position")), 3u);
    CsvSchema items;
    items.columns = {{.name = "item_id", .dtype = DType::kInt64}, {.name = "item_feature_0"}};
    items.header = true;
    EXPECT_EQ(
        cardinality(Dataset::csv(kSets + "open-bandit-small/" + name + ".item_context.csv", items)),
        static_cast<std::int64_t>(facts.second));
  }
}

TEST(Sets, FashionMnistIsTwoIdxFiles) {
  const std::string folder = kSets + "fashion-mnist/t10k-";
  const Dataset data =
      Dataset::idx({{"image", {folder + "images-idx3-ubyte.gz"}, DType::kUint8, {28, 28}},
                    {"label", {folder + "labels-idx1-ubyte.gz"}}},
                   "label");
  EXPECT_EQ(cardinality(data), 10'000);
  const Table images(data);
  EXPECT_EQ(images.rows("image"), 10'000);
  std::vector<int> of_class(10);
  for (const std::uint8_t label : images.of<std::uint8_t>("label")) ++of_class.at(label);
  EXPECT_THAT(of_class, ::testing::Each(1000));
  EXPECT_EQ(images.of<std::uint8_t>("label")[0], 9);  // an ankle boot
}

TEST(Sets, FlightsAreCsvWithUnknownCells) {
  CsvSchema schema;
  schema.columns = {{.name = "day", .dtype = DType::kInt64},
                    {.name = "arr_delay", .default_value = "0", .missing_indicator = true},
                    {.name = "carrier", .dtype = DType::kString},
                    {.name = "flight", .dtype = DType::kInt64},
                    {.name = "origin", .dtype = DType::kString},
                    {.name = "dest", .dtype = DType::kString}};
  schema.header = true;
  schema.unknown = "NA";
  const Table flights(Dataset::csv(kSets + "nycflights13/flights.csv.gz", schema));
  EXPECT_EQ(flights.rows("day"), 336'776);
  EXPECT_EQ(336'776 - flights.ones("arr_delay/missing"), 327'346);
  EXPECT_EQ(std::ranges::count_if(flights.of<float>("arr_delay"), [](float x) { return x > 15; }),
            77'630);
  EXPECT_EQ(distinct(flights.texts("carrier")), 16u);
  EXPECT_EQ(distinct(flights.of<std::int64_t>("flight")), 3844u);
  EXPECT_EQ(distinct(flights.texts("origin")), 3u);
  EXPECT_EQ(distinct(flights.texts("dest")), 105u);
  EXPECT_EQ(flights.of<float>("arr_delay")[0], 11);
}

TEST(Sets, WhatFlightsAreJoinedWithIsCsvToo) {
  const auto rows = [](const std::string& file, const std::string& key) {
    CsvSchema schema;
    schema.columns = {{.name = key, .dtype = DType::kString}};
    schema.header = true;
    const Table table(Dataset::csv(kSets + "nycflights13/" + file, schema));
    EXPECT_EQ(distinct(table.texts(key)), static_cast<std::size_t>(table.rows(key)));
    return table.rows(key);
  };
  EXPECT_EQ(rows("planes.csv.gz", "tailnum"), 3322);
  EXPECT_EQ(rows("airports.csv.gz", "faa"), 1458);
  EXPECT_EQ(rows("airlines.csv", "carrier"), 16);
}

}  // namespace
}  // namespace cairn::testing
