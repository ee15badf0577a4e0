// Rows of a request are what the same rows of a file are, to the bit.
#include <gmock/gmock.h>

#include "tests/model/small_model.h"
#include "tests/serving/raw/census.h"

namespace cairn::serving::testing {
namespace {

using Format = Census::Format;

constexpr std::uint64_t kSeeds = 5;

// Requests of 1 to 200 rows, one after another from the same RawRows.
template <typename MakeBody>
void expect_as_from_file(Census& census, RawForm form, MakeBody body_of,
                         const std::function<std::string(const std::vector<Cells>&)>& file_of) {
  RawRows read(census.about());
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    std::mt19937_64 random(seed);
    for (const std::size_t size : {std::size_t{1}, std::size_t{64}, 1 + random() % 200}) {
      const std::vector<Cells> rows = random_rows(random(), size);
      const auto wanted = census.from_file(file_of(rows), 1000);
      ASSERT_EQ(wanted.size(), 1u);
      expect_equal_bits(census.from_body(read, body_of(rows), form), wanted.front());
    }
  }
}

TEST(RawRows, OfCsvLinesAreThoseOfAFile) {
  Census census;
  const auto file = [](const std::vector<Cells>& rows) { return csv_lines(rows); };
  expect_as_from_file(census, RawForm::kText, file, file);
}

TEST(RawRows, NeedNoLabelNorALastLineEndAndMayHaveCarriageReturns) {
  Census census;
  const auto file = [](const std::vector<Cells>& rows) { return csv_lines(rows); };
  const LineOptions plain{.label = false}, dos{.label = false, .end = "\r\n"};
  const auto unlabelled = [&](const std::vector<Cells>& rows) { return csv_lines(rows, plain); };
  const auto from_dos = [&](const std::vector<Cells>& rows) { return csv_lines(rows, dos); };
  const auto without_end = [&](const std::vector<Cells>& rows) {
    const std::string text = csv_lines(rows);
    return "\n\n" + text.substr(0, text.size() - 1);
  };
  expect_as_from_file(census, RawForm::kText, unlabelled, file);
  expect_as_from_file(census, RawForm::kText, from_dos, file);
  expect_as_from_file(census, RawForm::kText, without_end, file);
}

TEST(RawRows, HaveAHeaderWhereTheTrainingDataHasOne) {
  Census census(Format::kCsvWithHeader);
  const auto file = [](const std::vector<Cells>& rows) { return header_line() + csv_lines(rows); };
  const auto unlabelled = [](const std::vector<Cells>& rows) {
    return "\xEF\xBB\xBF" + header_line({.label = false}) + csv_lines(rows, {.label = false});
  };
  // Columns are found by their names, and others are read past.
  const auto turned = [](const std::vector<Cells>& rows) {
    const auto reversed = [](Cells cells) {
      cells.push_back("more");
      std::ranges::reverse(cells);
      return cells;
    };
    Cells names;
    for (const CsvColumn& column : census_schema(true).columns) names.push_back(column.name);
    std::string text = csv_line(reversed(names));
    for (const Cells& cells : rows) text += csv_line(reversed(cells));
    return text;
  };
  expect_as_from_file(census, RawForm::kText, file, file);
  expect_as_from_file(census, RawForm::kText, unlabelled, file);
  expect_as_from_file(census, RawForm::kText, turned, file);
}

std::string list_of(const std::vector<Cells>& rows) {
  std::mt19937_64 random(rows.size());
  std::string text;
  for (const Cells& cells : rows)
    text += (text.empty() ? "[" : ",\n") + json_object(cells, random() % 2 == 0, random);
  return text + "]";
}

TEST(RawRows, OfJsonObjectsAreThoseOfTheCsvLines) {
  const auto lines = [](const std::vector<Cells>& rows) { return json_lines_of(rows, true, 1); };
  const auto unlabelled = [](const std::vector<Cells>& rows) {
    return json_lines_of(rows, false, 2);
  };
  const auto file = [](const std::vector<Cells>& rows) { return csv_lines(rows); };
  const auto with_header = [&](const std::vector<Cells>& rows) {
    return header_line() + csv_lines(rows);
  };
  Census census, headed(Format::kCsvWithHeader);
  expect_as_from_file(census, RawForm::kJson, lines, file);
  expect_as_from_file(census, RawForm::kJson, unlabelled, file);
  expect_as_from_file(census, RawForm::kJson, list_of, file);
  expect_as_from_file(headed, RawForm::kJson, list_of, with_header);
}

TEST(RawRows, OfAModelThatWasTrainedFromJsonLinesAreJson) {
  Census census(Format::kJsonLines);
  const auto file = [](const std::vector<Cells>& rows) { return json_lines_of(rows, true, 1); };
  const auto unlabelled = [](const std::vector<Cells>& rows) {
    return json_lines_of(rows, false, 2);
  };
  expect_as_from_file(census, RawForm::kText, file, file);
  expect_as_from_file(census, RawForm::kText, unlabelled, file);
  expect_as_from_file(census, RawForm::kJson, list_of, file);
}

// Batches of a file differ in their row splits alone from the batch of a body.
TEST(RawRows, OfALargeBodyAreOneBatch) {
  Census census;
  RawRows read(census.about());
  const std::string text = csv_lines(random_rows(7, 5000));
  ASSERT_GT(text.size(), std::size_t{300} << 10) << "more than a reader's buffer";

  const RawExamples got = read.read(text, RawForm::kText);

  EXPECT_EQ(got.examples, 5000);
  expect_equal_bits(census.model().predict(got.columns), census.from_file(text, 5000).at(0));
}

TEST(RawRows, OfARequestLeaveNothingBehind) {
  Census census;
  RawRows read(census.about());
  const std::string a = csv_lines(random_rows(1, 9)), b = csv_lines(random_rows(2, 3));
  const RawExamples first = read.read(a, RawForm::kText);
  const std::vector<Element> wanted = census.from_file(a, 9);
  EXPECT_THROW(read.read("1,2\n", RawForm::kText), InvalidArgumentError);
  read.read(b, RawForm::kText);
  expect_equal_bits(census.model().predict(first.columns), wanted.at(0));
  expect_equal_bits(census.from_body(read, a, RawForm::kText), wanted.at(0));
}

// Embeddings, a tower and what it predicts, where an earlier test only looks at columns.
TEST(RawRows, ArePredictedAsThoseOfAFile) {
  cairn::testing::SmallSave small;
  OneDeviceStrategy strategy(3);
  cairn::testing::train(strategy, small.model, small.examples());
  small.save(strategy);
  LoadedModel model = LoadedModel::load(small.path);
  RawRows read(model.about());
  const std::string lines = cairn::testing::small_data();
  std::vector<std::vector<Tensor>> wanted, got;
  model.predict(model.examples({small.data}),
                [&](const std::vector<Tensor>& outputs) { wanted.push_back(outputs); },
                {.batch = 1});
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at) + 1;
    got.push_back(model.predict(read.read(lines.substr(at, end - at), RawForm::kText).columns));
    at = end;
  }
  cairn::testing::expect_equal_bits(got, wanted);
}

// A map() that was traced with the label takes it, so that the rows have to have one.
TEST(RawRows, OfMapsGoThroughThem) {
  cairn::testing::SmallSave small;
  const Dataset doubled = small.examples().map([](const Features& all) {
    return Outputs{{"twice", all["numeric"] * Array(2.0f)}};
  });
  const Function predict([](Iterator input) { return input.get_next().features["twice"]; });
  OneDeviceStrategy strategy(3);
  save_model(strategy, predict, {{{"twice", {DType::kFloat32, {Shape::kUnknown, 1}}}}, ""},
             {.examples = doubled, .label = "label"}, small.path);
  LoadedModel model = LoadedModel::load(small.path);
  RawRows read(model.about());
  const Element twice = read.read("1,w,3,7\n0,w,,5.5\n", RawForm::kText).columns;
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0].shape(), (Shape{2, 1}));
  EXPECT_FLOAT_EQ(twice[0].values<float>()[0], 2);
  EXPECT_FLOAT_EQ(twice[0].values<float>()[1], 1);
}

TEST(RawRows, OfLibsvmAreItsLines) {
  tools::TempFolder folder;
  folder.write("data", "");
  const Dataset examples = Dataset::libsvm(folder.path() + "/data");
  ElementSpec input = examples.batch(1).element_spec();
  std::erase_if(input.columns, [](const ColumnSpec& column) { return column.name == "label"; });
  input.label.clear();
  const Function predict([](Iterator iterator) {
    return Outputs{{"values", iterator.get_next().features.values("values")}};
  });
  OneDeviceStrategy strategy(3);
  save_model(strategy, predict, input, {.examples = examples, .label = "label"},
             folder.path() + "/model");
  RawRows read(read_saved_model(folder.path() + "/model"));
  const RawExamples got = read.read("1 3:0.5 8:2 # two\n0\n-1 1:7", RawForm::kText);
  EXPECT_EQ(got.examples, 3);
  const auto splits = got.columns[1].values<std::int64_t>();
  EXPECT_THAT(std::vector(splits.begin(), splits.end()), ::testing::ElementsAre(0, 2, 2, 3));
  const auto values = got.columns[2].values<float>();
  EXPECT_THAT(std::vector(values.begin(), values.end()), ::testing::ElementsAre(0.5f, 2, 7));
}

}  // namespace
}  // namespace cairn::serving::testing
