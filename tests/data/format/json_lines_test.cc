// json_lines(): what objects say, and what is said about bad lines.
#include <gmock/gmock.h>

#include "data/dataset/auto_shard.h"
#include "data/dataset/lines_read.h"
#include "data/format/json/json_lines.h"
#include "data/stage/dataset_wire.h"
#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

template <typename T>
std::vector<T> column_of(const Dataset& dataset, const std::string& name) {
  const Element all = open(dataset.batch(1000))->next().value();
  const auto values = all[dataset.element_spec().find(name)].values<T>();
  return {values.begin(), values.end()};
}
std::vector<std::string> texts_of(const Dataset& dataset, const std::string& name) {
  const Element all = open(dataset.batch(1000))->next().value();
  const auto values = all[dataset.element_spec().find(name)].string_values();
  return {values.begin(), values.end()};
}

CsvSchema schema_of(std::vector<CsvColumn> columns) { return {.columns = std::move(columns)}; }

const CsvColumn kId{"id", DType::kInt64}, kX{"x", DType::kFloat32}, kText{"t", DType::kString};
const CsvColumn kTags{.name = "tags", .dtype = DType::kInt64, .separator = '|'};
const CsvColumn kWords{.name = "words", .dtype = DType::kString, .separator = '|'};

// The error about `line`, which is the third.
std::string refusal_of(const std::string& line, const CsvSchema& schema) {
  const TempFolder folder;
  const std::string good = R"({"id": 1, "x": 1, "t": "", "tags": [], "words": []})"
                           "\n";
  const std::string path = folder.write("s", good + "\n" + line + "\n" + good);
  const std::string error = error_of([&] { read_all(json_lines({path}, schema)); });
  EXPECT_THAT(error, AllOf(HasSubstr("InvalidArgument: " + path + ":3:"),
                           HasSubstr("or leave such lines out with OnError::kSkipAndCount")));
  // The others are read.
  EXPECT_EQ(read_all(json_lines({path}, schema, {OnError::kSkipAndCount})).size(), 2u) << line;
  return error.size() < path.size() ? error : error.substr(error.find(":3:") + 3);
}

TEST(JsonLines, ValuesAreFoundByTheirKeysInAnyOrderAndOthersAreReadPast) {
  const TempFolder folder;
  const Dataset data = json_lines(
      {folder.write("s",
                    "\xEF\xBB\xBF{\"id\":7,\"x\":-0.5e1,\"t\":\"a\"}\r\n"
                    "\n  \n"
                    " {\"more\": {\"id\": [1, {\"x\": 2}]}, \"t\" : \"b\\n\\u00e9\\\"\" , "
                    "\"id\": \"8\", \"x\": 0.25} \n"
                    "{\"x\":1,\"t\":\"\",\"\\u0069d\":9,\"none\":null}")},
      schema_of({kId, kX, kText}));
  EXPECT_THAT(column_of<std::int64_t>(data, "id"), ElementsAre(7, 8, 9));
  EXPECT_THAT(column_of<float>(data, "x"), ElementsAre(-5, 0.25f, 1));
  EXPECT_THAT(texts_of(data, "t"), ElementsAre("a", "b\n\xC3\xA9\"", ""));
}

TEST(JsonLines, ListsAreRaggedAndTextsOfThemMayHoldAnySeparator) {
  const TempFolder folder;
  const Dataset data =
      json_lines({folder.write("s",
                               "{\"tags\": [1, 22 ,333], \"words\": [\"a|b\", \"c\\td\"]}\n"
                               "{\"tags\": []}\n"
                               "{\"tags\": null, \"words\": [\"e\"]}\n")},
                 schema_of({kTags, kWords}));
  EXPECT_THAT(column_of<std::int64_t>(data, "tags"), ElementsAre(1, 22, 333));
  EXPECT_THAT(column_of<std::int64_t>(data, "tags/row_splits"), ElementsAre(0, 3, 3, 3));
  EXPECT_THAT(texts_of(data, "words"), ElementsAre("a|b", "c\td", "e"));
  EXPECT_THAT(column_of<std::int64_t>(data, "words/row_splits"), ElementsAre(0, 2, 2, 3));
}

TEST(JsonLines, NumbersKeepAllTheirDigits) {
  const TempFolder folder;
  const Dataset data =
      json_lines({folder.write("s",
                               "{\"id\": 9007199254740993, \"t\": 123456789012345678901}\n"
                               "{\"id\": -9223372036854775808, \"t\": -0.0}\n"
                               "{\"id\": 9223372036854775807, \"t\": 1E+2}\n")},
                 schema_of({kId, kText}));
  EXPECT_THAT(column_of<std::int64_t>(data, "id"),
              ElementsAre(9007199254740993, INT64_MIN, INT64_MAX));
  EXPECT_THAT(texts_of(data, "t"), ElementsAre("123456789012345678901", "-0.0", "1E+2"));
  const auto id = [](const char* value) {
    return refusal_of(std::string("{\"id\": ") + value + "}", schema_of({kId}));
  };
  EXPECT_THAT(id("9223372036854775808"), HasSubstr("\"9223372036854775808\" is not of type int64"));
  EXPECT_THAT(id("1.0"), HasSubstr("a number with a decimal point"));
  EXPECT_THAT(id("1e3"), HasSubstr("a decimal point or an exponent"));
  EXPECT_THAT(id("true"), HasSubstr("column \"id\": \"true\" is not of type int64"));
  EXPECT_THAT(refusal_of("{\"x\": 1e999}", schema_of({kX})), HasSubstr("1e999"));
  EXPECT_THAT(refusal_of("{\"x\": NaN}", schema_of({kX})), HasSubstr("not one JSON object"));
  EXPECT_THAT(refusal_of("{\"x\": -Infinity}", schema_of({kX})), HasSubstr("not one JSON object"));
  EXPECT_THAT(refusal_of("{\"x\": 01}", schema_of({kX})), HasSubstr("not one JSON object"));
}

TEST(JsonLines, AMissingValueIsTheDefaultOrAnError) {
  const TempFolder folder;
  CsvColumn x = kX, t = kText;
  x.default_value = "-1";
  t.missing_indicator = true;
  CsvSchema schema = schema_of({x, t});
  schema.unknown = "?";
  const Dataset data =
      json_lines({folder.write("s",
                               "{}\n{\"x\": null, \"t\": null}\n{\"x\": \"?\", \"t\": \"?\"}\n"
                               "{\"x\": \"\", \"t\": \"\"}\n{\"x\": 2, \"t\": \"a\"}\n")},
                 schema);
  EXPECT_THAT(column_of<float>(data, "x"), ElementsAre(-1, -1, -1, -1, 2));
  EXPECT_THAT(texts_of(data, "t"), ElementsAre("", "", "?", "", "a"));
  EXPECT_THAT(column_of<float>(data, "t/missing"), ElementsAre(1, 1, 1, 1, 0));
  for (const char* line : {"{\"x\": 2}", "{\"x\": 2, \"t\": null}"})
    EXPECT_THAT(refusal_of(line, schema_of({kX, kText})),
                HasSubstr("column \"t\": there is no value for it (no such key, or null), and the "
                          "column has no CsvColumn::default_value; give it one"));
  EXPECT_THAT(refusal_of("{\"t\": \"\"}", schema_of({kX, kText})),
              HasSubstr("column \"x\": there is no value for it"));
}

// Without a list of negative texts any other text is 0, but no text is not.
TEST(JsonLines, AMissingLabelIsNeverAClass) {
  CsvSchema schema = schema_of({kText});
  schema.label = {.column = "t", .positive = {"yes"}};
  const TempFolder folder;
  EXPECT_THAT(column_of<float>(
                  json_lines({folder.write("s", "{\"t\": \"no\"}\n{\"t\":\"yes\"}")}, schema), "t"),
              ElementsAre(0, 1));
  EXPECT_THAT(refusal_of("{}", schema), HasSubstr("there is no value for it"));
  schema.label.skip_unknown = true;
  EXPECT_THAT(
      column_of<float>(
          json_lines({folder.write("u", "{}\n{\"t\": null}\n{\"t\":\"yes\"}")}, schema), "t"),
      ElementsAre(1));
}

TEST(JsonLines, BadLinesAreReportedByCharacterColumnAndCure) {
  const CsvSchema all = schema_of({kId, kTags, kWords});
  const auto refusal = [&all](const std::string& line) { return refusal_of(line, all); };
  EXPECT_THAT(refusal("{\"id\": 1, \"id\": 1}"),
              HasSubstr("12: column \"id\": the key stands there twice"));
  EXPECT_THAT(refusal("{\"id\": {\"a\": 1}}"),
              AllOf(HasSubstr("3: column \"id\": an object stands there, and one number or text"),
                    HasSubstr("write each to a key of its own")));
  EXPECT_THAT(refusal("{\"id\": [1]}"), HasSubstr("column \"id\": a list stands there"));
  EXPECT_THAT(refusal("{\"id\": 1, \"tags\": 5}"),
              HasSubstr("column \"tags\": one value stands there, and a list is wanted"));
  EXPECT_THAT(refusal("{\"id\": 1, \"tags\": [[5]]}"), HasSubstr("column \"tags\": a list stands"));
  EXPECT_THAT(refusal("{\"id\": 1, \"tags\": [{}]}"), HasSubstr("column \"tags\": an object"));
  EXPECT_THAT(refusal("{\"id\": 1, \"tags\": [1, null]}"), HasSubstr("null stands in its list"));
  EXPECT_THAT(refusal("{\"id\": 1, \"tags\": [1, \"z\"]}"),
              HasSubstr("\"z\" is not of type int64"));
  EXPECT_THAT(refusal("{\"id\": 1, \"words\": [\"\"]}"), HasSubstr("an empty text stands in"));
  EXPECT_THAT(refusal("{\"id\": 1, \"words\": [\"a\\u001fb\"]}"), HasSubstr("U+001F"));
  EXPECT_THAT(refusal("{\"id\": 1"), HasSubstr("9: this is not one JSON object: the line ends"));
  EXPECT_THAT(refusal("{\"id\": 1} {}"), HasSubstr("text follows it"));
  EXPECT_THAT(refusal("{\"id\" 1}"), HasSubstr("this is not one JSON object"));
  EXPECT_THAT(refusal("{'id': 1}"), HasSubstr("this is not one JSON object"));
  EXPECT_THAT(refusal("{\"id\": 1,}"), HasSubstr("this is not one JSON object"));
  EXPECT_THAT(refusal("{\"id\": \"\xFF\"}"), HasSubstr("this is not one JSON object"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("the line is a list, and an object is wanted"));
  EXPECT_THAT(refusal("5"), HasSubstr("the line is a single value, and an object is wanted"));
  EXPECT_THAT(refusal("null"), HasSubstr("the line is a single value"));
  EXPECT_THAT(refusal("id,x"), HasSubstr("this is not one JSON object"));
}

TEST(JsonLines, WhatIsOfCsvTextAloneIsRefused) {
  CsvSchema schema = schema_of({kId});
  schema.delimiter = '\t';
  EXPECT_THAT(error_of([&] { json_lines({"s"}, schema); }),
              HasSubstr("InvalidArgument: json_lines: the schema has a delimiter"));
  EXPECT_THAT(error_of([] { json_lines({}, schema_of({kId})); }), HasSubstr("path"));
  EXPECT_THAT(error_of([] { json_lines({"s"}, schema_of({kId, kId})); }), HasSubstr("\"id\""));
}

std::string lines_from(int begin, int end) {
  std::string lines;
  for (int i = begin; i < end; ++i)
    lines += str("{\"t\": \"", std::string(static_cast<std::size_t>(i % 7), 'x'),
                 i % 5 == 0 ? "\\n" : "", "\", \"id\": ", i, ", \"tags\": [",
                 i % 3 == 0 ? "" : str(i, ", ", i + 1), "]}\n");
  return lines;
}

TEST(JsonLines, FilesShardsAndInterleavedFilesGoOnFromAnyPlace) {
  const TempFolder folder;
  const std::vector<std::string> files{folder.write("a", lines_from(0, 30)),
                                       folder.write("b", lines_from(30, 31)),
                                       folder.write("c", lines_from(31, 90))};
  const CsvSchema schema = schema_of({kId, kText, kTags});
  const Dataset all = json_lines(files, schema);
  EXPECT_EQ(cardinality(all), 90);
  EXPECT_EQ(cardinality(all.shard(4, 3)), 22);
  for (const Dataset& data : {all.batch(7), all.shard(3, 1).repeat(2), all.interleave(2, 3),
                              all.shuffle(20, 3).batch(4)}) {
    const std::vector<std::string> whole = read_all(data);
    for (std::size_t at = 0; at <= whole.size(); at += 3) {
      const auto iterator = open(data);
      rest_of(*iterator, at);
      const IteratorState state = iterator->state();
      std::vector<std::string> rest(whole.begin() + static_cast<std::ptrdiff_t>(at), whole.end());
      EXPECT_EQ(rest_of(*open(data, state)), rest) << at;
      const auto skipped = open(data);
      skipped->skip_to(static_cast<std::int64_t>(at));
      EXPECT_EQ(rest_of(*skipped), rest) << at;
    }
  }
  const ShardedDataset own = auto_shard(all, AutoShardPolicy::kFile, 3, 1);
  EXPECT_EQ(values_of(own.dataset), (std::vector<std::int64_t>{30}));
}

TEST(JsonLines, ABadLineBehindGoodOnesIsMetAgainFromThePlaceBeforeIt) {
  const TempFolder folder;
  const std::string path =
      folder.write("s", lines_from(0, 3) + "{\"id\": bad}\n" + lines_from(3, 5));
  const Dataset data = json_lines({path}, schema_of({kId}));
  const auto iterator = open(data);
  EXPECT_EQ(rest_of(*iterator, 3).size(), 3u);
  const std::string error = error_of([&] { iterator->next(); });
  EXPECT_THAT(error, HasSubstr(path + ":4:"));
  EXPECT_EQ(error_of([&] { open(data, iterator->state())->next(); }), error);
  LinesRead lines;
  EXPECT_EQ(cardinality(json_lines({path}, schema_of({kId}), {OnError::kSkipAndCount}), &lines), 5);
  EXPECT_EQ(lines.skipped, 1);
  EXPECT_THAT(lines.first_skipped, ElementsAre(HasSubstr(path + ":4:")));
}

TEST(JsonLines, TheDescriptionTravelsUnderItsName) {
  CsvSchema schema = schema_of({kId, kText, kTags});
  schema.where = {"id > 1"};
  const Dataset data = json_lines({"a", "b"}, schema, {OnError::kSkipAndCount, EmptyFiles::kSkip});
  const auto bytes = serialize(data.shard(3, 1).batch(2));
  EXPECT_EQ(serialize(parse_dataset(bytes)), bytes);
  std::vector<std::byte> other = serialize(data);
  const std::string text(reinterpret_cast<const char*>(other.data()), other.size());
  EXPECT_THAT(text, HasSubstr("jsonl"));
}

TEST(JsonLines, ConditionsAndFeaturesReadCellsAsThoseOfCsv) {
  const TempFolder folder;
  CsvSchema schema = schema_of({kId, kX, kText});
  schema.label.column = "x";
  const std::string json = folder.write("s.jsonl",
                                        "{\"id\":1,\"x\":2,\"t\":\"a\"}\n"
                                        "{\"x\":0.5,\"id\":2,\"t\":\"b\"}\n"
                                        "{\"t\":\"a\",\"id\":3,\"x\":1}\n");
  const std::string csv = folder.write("s.csv", "1,2,a\n2,0.5,b\n3,1,a\n");
  schema.where = {"id != 2"};
  const std::vector<FeatureColumn> features{FeatureColumn::vocabulary("t", {"a", "b"}),
                                            FeatureColumn::hashed("id", 10)};
  EXPECT_EQ(read_all(json_lines({json}, schema).features(features)),
            read_all(Dataset::csv(csv, schema).features(features)));
}

}  // namespace
}  // namespace cairn::testing
