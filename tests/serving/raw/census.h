// A model of people, whose examples have every kind of feature, and rows of them by seed: as CSV
// lines and as JSON objects.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset/dataset_iterator.h"
#include "data/dataset/stage_spec.h"
#include "data/format/json/json_lines.h"
#include "model/saved/loaded_model.h"
#include "model/saved/saved_model.h"
#include "serving/raw/raw_rows.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/tools/temp_folder.h"

namespace cairn::serving::testing {

inline CsvSchema census_schema(bool header) {
  CsvSchema schema;
  schema.columns = {
      {.name = "age", .dtype = DType::kInt32},
      {.name = "hours", .default_value = "40"},
      {.name = "gain", .dtype = DType::kFloat64, .default_value = "0.5", .missing_indicator = true},
      {.name = "work", .dtype = DType::kString},
      {.name = "school", .dtype = DType::kString, .default_value = "none"},
      {.name = "since", .dtype = DType::kInt64, .date_format = "%Y-%m-%d"},
      {.name = "tags", .dtype = DType::kString, .separator = '|'},
      {.name = "codes", .dtype = DType::kInt64, .separator = '|'},
      {.name = "id", .dtype = DType::kInt64},
      {.name = "words", .dtype = DType::kString},
      {.name = "income", .dtype = DType::kString}};
  schema.label = {.column = "income", .positive = {">50K"}};
  schema.header = header;
  schema.unknown = "?";
  schema.cell_lines_max = 9;
  return schema;
}

inline std::vector<FeatureColumn> census_features() {
  return {FeatureColumn::numeric({{.column = "age", .mean = 38.5f, .stddev = 13.7f},
                                  {.column = "hours", .log1p = true},
                                  {.column = "gain"},
                                  {.column = "gain/missing"},
                                  {.column = "since", .days_until = 1'700'000'000}}),
          FeatureColumn::vocabulary("work", {"Private", "State", "?"}),
          FeatureColumn::hashed("school", 1000),
          FeatureColumn::bucketised("age", {18, 25, 30, 65}),
          FeatureColumn::crossed({"work", "school"}, 100),
          FeatureColumn::crossed({"age_bucket", "school"}, 100),
          FeatureColumn::date_part("since", DatePart::kMonth),
          FeatureColumn::hashed("tags", 50),
          FeatureColumn::as_is("codes", 100, "codes", 7),
          FeatureColumn::as_is("id"),
          FeatureColumn::words("words", 500, {.words_max = 2})};
}

// The saved model, whose outputs are its columns as they are.
class Census {
 public:
  enum class Format { kCsv, kCsvWithHeader, kJsonLines };
  explicit Census(Format format = Format::kCsv, std::vector<std::string> where = {}) {
    CsvSchema schema = census_schema(format == Format::kCsvWithHeader);
    schema.where = std::move(where);
    folder_.write("data", "");
    if (format == Format::kJsonLines) schema.cell_lines_max = 1;
    const Dataset source =
        format == Format::kJsonLines
            ? json_lines({path("data")}, schema)
            : Dataset::csv(path("data"), schema, {.on_error = OnError::kSkipAndCount});
    save(source.features(census_features()));
  }
  LoadedModel& model() { return *model_; }
  const SavedModel& about() const { return model_->about(); }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  // The outputs that `cairn predict` has from a file of these lines, `batch` rows at a time.
  std::vector<Element> from_file(const std::string& text, std::int64_t batch) {
    folder_.write("lines", text);
    std::vector<Element> all;
    model_->predict(model_->examples({path("lines")}),
                    [&](const std::vector<Tensor>& outputs) { all.push_back(outputs); },
                    {.batch = batch});
    return all;
  }
  // The same of a request.
  Element from_body(RawRows& rows, const std::string& body, RawForm form) {
    return model_->predict(rows.read(body, form).columns);
  }

 private:
  void save(const Dataset& examples) {
    ElementSpec input = examples.batch(1).element_spec();
    std::erase_if(input.columns, [](const ColumnSpec& column) { return column.name == "income"; });
    input.label.clear();
    const Function predict([input](Iterator iterator) {
      const Features features = iterator.get_next().features;
      Outputs outputs;
      for (const ColumnSpec& column : input.columns) {
        if (column.name.ends_with(kRowSplits)) continue;
        const bool ragged = std::ranges::any_of(input.columns, [&](const ColumnSpec& other) {
          return other.name == column.name + kRowSplits;
        });
        if (ragged) {
          outputs.emplace_back(column.name, features.values(column.name));
          outputs.emplace_back(column.name + "_splits", features.row_splits(column.name));
        } else {
          outputs.emplace_back(column.name, features[column.name]);
        }
      }
      return outputs;
    });
    OneDeviceStrategy strategy(1);
    save_model(strategy, predict, input,
               {.name = "census", .examples = examples, .label = "income"}, path("model"));
    model_ = LoadedModel::load(path("model"));
  }

  tools::TempFolder folder_;
  std::optional<LoadedModel> model_;
};

// The cells of one row in the order of the schema; none: it is missing.
using Cells = std::vector<std::optional<std::string>>;

inline Cells random_cells(std::mt19937_64& random) {
  const auto up_to = [&](std::uint64_t most) { return random() % most; };
  const auto some = [&](std::vector<std::string> all) { return all[up_to(all.size())]; };
  const auto rarely = [&](std::string text) {
    return up_to(5) == 0 ? std::optional<std::string>() : std::move(text);
  };
  std::string tags, codes;
  for (std::uint64_t i = up_to(4); i > 0; --i)
    tags += (tags.empty() ? "" : "|") + some({"a", "b c", "\xC3\xA9"});
  for (std::uint64_t i = up_to(4); i > 0; --i)
    codes += (codes.empty() ? "" : "|") + std::to_string(up_to(20));
  return {std::to_string(up_to(100)),
          rarely(str(static_cast<double>(up_to(1000)) / 7)),
          rarely(str(up_to(100'000), ".", up_to(1000), "e-", up_to(5))),
          some({"Private", "State", "Never", "?"}),
          rarely(some({"Bachelors", "11th", "Doctorate"})),
          str(1950 + up_to(80), "-0", 1 + up_to(9), "-", 10 + up_to(19)),
          tags,
          codes,
          std::to_string(static_cast<std::int64_t>(random())),
          some({"one, two", "a \"quoted\" word", "two\nlines", "plain", "tab\there"}),
          some({">50K", "<=50K"})};
}

inline std::vector<Cells> random_rows(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<Cells> rows;
  while (rows.size() < count) rows.push_back(random_cells(random));
  return rows;
}

inline std::string quoted(const std::string& text, const char* twice) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"')
      made += twice;
    else if (c == '\n' && *twice == '\\')
      made += "\\n";
    else if (c == '\t' && *twice == '\\')
      made += "\\u0009";
    else
      made += c;
  }
  return made + "\"";
}

struct LineOptions {
  bool label = true;
  std::string end = "\n";
};
inline std::string csv_line(const Cells& cells, const LineOptions& options = {}) {
  std::string line;
  const std::size_t count = cells.size() - (options.label ? 0 : 1);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) line += ',';
    if (!cells[i]) continue;
    line += cells[i]->find_first_of(",\"\n") == std::string::npos ? *cells[i]
                                                                  : quoted(*cells[i], "\"\"");
  }
  return line + options.end;
}
inline std::string csv_lines(const std::vector<Cells>& rows, const LineOptions& options = {}) {
  std::string text;
  for (const Cells& cells : rows) text += csv_line(cells, options);
  return text;
}
inline std::string header_line(const LineOptions& options = {}) {
  Cells names;
  for (const CsvColumn& column : census_schema(true).columns) names.push_back(column.name);
  return csv_line(names, options);
}

// A value that is missing is left out, or null, by chance.
inline std::string json_object(const Cells& cells, bool label, std::mt19937_64& random) {
  const CsvSchema schema = census_schema(false);
  std::string text = "{";
  for (std::size_t i = 0; i < cells.size() - (label ? 0 : 1); ++i) {
    const CsvColumn& column = schema.columns[i];
    if (!cells[i] && random() % 2 == 0) continue;
    text += str(text.size() > 1 ? ", " : "", "\"", column.name, "\": ");
    const bool is_text = column.dtype == DType::kString || !column.date_format.empty();
    if (column.separator != 0) {
      std::string list;
      for (std::size_t at = 0; at < cells[i]->size();) {
        const std::size_t end = std::min(cells[i]->find('|', at), cells[i]->size());
        const std::string item = cells[i]->substr(at, end - at);
        list += (list.empty() ? "" : ", ") + (is_text ? quoted(item, "\\\"") : item);
        at = end + 1;
      }
      text += "[" + list + "]";
    } else {
      text += !cells[i] ? "null" : is_text ? quoted(*cells[i], "\\\"") : *cells[i];
    }
  }
  return text + "}";
}
inline std::string json_lines_of(const std::vector<Cells>& rows, bool label, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text;
  for (const Cells& cells : rows) text += json_object(cells, label, random) + "\n";
  return text;
}

inline void expect_equal_bits(const Element& got, const Element& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].type(), wanted[i].type()) << "column " << i;
    EXPECT_EQ(std::memcmp(got[i].raw(), wanted[i].raw(), got[i].bytes()), 0) << "column " << i;
  }
}

}  // namespace cairn::serving::testing
