// Formats whose examples are cells of text, which CsvSchema describes: csv, text, criteo and jsonl.
#include <algorithm>

#include "core/base/error.h"
#include "data/format/criteo_like.h"
#include "data/format/csv.h"
#include "data/format/json/json_lines.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_format.h"
#include "tools/job/toml/job_label.h"

namespace cairn::tools {
namespace {

// The texts of the label's classes; where the job gives their number only, the numbers below it.
std::vector<std::string> class_texts(const Job& job) {
  std::vector<std::string> texts = job.model.class_texts;
  if (texts.empty() && job.model.objective == "multiclass")
    for (std::int64_t i = 0; i < job.model.classes; ++i) texts.push_back(std::to_string(i));
  return texts;
}

void verify_cell_label(const Job& job, const std::string& key, const CsvColumn& column) {
  const bool texts = !job.data.form().cells()->label.positive.empty();
  const std::string& objective = job.model.objective;
  if (texts && objective != "binary" && objective != "ranking")
    throw InvalidArgumentError(
        str(key, ".positive is of model.objective = \"binary\" and \"ranking\", and this is \"",
            objective, "\""));
  if (!column.date_format.empty() && objective == "binary" && !texts &&
      !job.data.truth.is_threshold())
    throw InvalidArgumentError(str(key, ": column \"", column.name,
                                   "\" holds dates, which are no label of two classes: say with "
                                   "`above` or `below`, in seconds since 1970, which count as 1"));
  if (column.dtype != DType::kString || texts || objective == "multiclass") return;
  if (objective == "regression" || job.data.truth.is_threshold())
    throw InvalidArgumentError(str(key, ": column \"", column.name,
                                   "\" holds text, where a number is wanted: give it a dtype, \"",
                                   column.name, ":float32\""));
  throw InvalidArgumentError(str(key, ": column \"", column.name,
                                 "\" holds text: say with `positive` which texts count as 1"));
}

// The first of `unknown` is of all columns; every column has the texts behind it.
void read_unknown(TomlTable& table, CsvSchema& csv) {
  std::vector<std::string> unknown;
  table.read("unknown", unknown);
  if (unknown.empty()) return;
  csv.unknown = unknown.front();
  for (CsvColumn& column : csv.columns)
    column.unknown.insert(column.unknown.end(), unknown.begin() + 1, unknown.end());
}

template <typename Derived>
class CellsFormat : public JobFormat {
 public:
  const CsvSchema* cells() const override { return &csv_; }
  const std::string& label() const override { return csv_.label.column; }
  const CsvLabel* label_texts() const override { return &csv_.label; }

  std::vector<ColumnType> columns() const override {
    std::vector<ColumnType> columns;
    for (const CsvColumn& column : csv_.columns) {
      if (column.skip) continue;
      columns.push_back({column.name, column.dtype, column.separator == 0});
      if (column.missing_indicator)
        columns.push_back({column.name + "/missing", DType::kFloat32, true});
    }
    return columns;
  }
  std::string date_cure(const std::string& column) const override {
    if (fixed_columns()) return str("data.format = \"", name(), "\" has none");
    return str("give it the format of its dates, \"", column,
               ":date:%Y-%m-%d\", or dtype int64 if it holds seconds since 1970");
  }
  void verify_label(const Job& job, const std::string& key) const override {
    for (const CsvColumn& column : csv_.columns)
      if (column.name == csv_.label.column) verify_cell_label(job, key, column);
  }

  Dataset source(const Job& job, const std::vector<std::string>& files,
                 const std::vector<std::string>& where) const override {
    CsvSchema schema = csv_;
    for (CsvColumn& column : schema.columns)
      if (is_whole(column.dtype)) column.ids = ids_of_column(job, column.name, 1);
    if (!schema.label.column.empty()) {
      schema.label.binary = has_binary_label(job);
      schema.label.skip_unknown = job.data.truth.skip_unknown;
      schema.label.classes = class_texts(job);
    }
    schema.where = where;
    return of_cells(files, schema, {job.data.options.on_error, job.data.options.empty_files});
  }
  // Rows that do not fit were reported, or left out, when the features were fitted.
  Dataset label_rows(const std::vector<std::string>& files,
                     const std::vector<std::string>& where) const override {
    CsvSchema schema = csv_;
    for (CsvColumn& column : schema.columns) {
      if (column.name != schema.label.column) {
        column.skip = column.skip || where.empty();
        column.missing_indicator = false;
        continue;
      }
      column.dtype = DType::kString;
      column.default_value.reset();
      column.date_format.clear();
      column.separator = 0;
      column.missing_indicator = false;
    }
    schema.label = {};
    schema.where = where;
    return of_cells(files, schema,
                    {.on_error = OnError::kSkipAndCount, .empty_files = EmptyFiles::kSkip});
  }
  // Without a header a column's place is what names it, so that it is read past; with one the file
  // may lack it.
  JobFormatPtr to_predict(const std::set<std::string>& needless) const override {
    auto made = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    CsvSchema& csv = made->csv_;
    const auto is_needless = [&](const CsvColumn& column) {
      return needless.contains(column.name);
    };
    if (csv.header)
      std::erase_if(csv.columns, is_needless);
    else
      for (CsvColumn& column : csv.columns) column.skip = column.skip || is_needless(column);
    csv.label = {};
    return made;
  }

 protected:
  virtual Dataset of_cells(const std::vector<std::string>& files, const CsvSchema& schema,
                           const CsvOptions& options) const {
    return Dataset::csv(files, schema, options);
  }

  CsvSchema csv_;
};

class CsvFormat final : public CellsFormat<CsvFormat> {
 public:
  const char* name() const override { return "csv"; }
  std::vector<std::string> endings() const override { return {".csv", ".tsv"}; }
  std::string label_key() const override { return "data.csv.label.column"; }
  void read(TomlTable table, JobLabel& truth, const std::vector<std::string>& files) override {
    const char separator = read_character(table, "separator", '|');
    read_columns(table, separator, csv_.columns);
    csv_.delimiter = read_character(table, "delimiter", has_tabs(files) ? '\t' : ',');
    std::string quote = "\"";
    table.read("quote", quote);
    require(quote.size() <= 1, table,
            str(table.path("quote"), " must be one character, or empty: quotes are ordinary then"));
    csv_.quote = quote.empty() ? '\0' : quote[0];
    table.read("cell_lines_max", csv_.cell_lines_max);
    table.read("strict", csv_.strict);
    table.read("header", csv_.header);
    table.read("comment", csv_.comment);
    read_unknown(table, csv_);
    read_csv_label(table, csv_.label, truth);
    table.refuse_unknown();
  }

 private:
  // By the first file whose ending names a format.
  static bool has_tabs(const std::vector<std::string>& files) {
    return telling_ending(files) == ".tsv";
  }
};

// Objects, whose values are cells by the names of their keys.
class JsonLinesFormat final : public CellsFormat<JsonLinesFormat> {
 public:
  const char* name() const override { return JsonLinesFiles::kJsonLines; }
  std::vector<std::string> endings() const override { return {".jsonl", ".ndjson"}; }
  void read(TomlTable table, JobLabel& truth, const std::vector<std::string>&) override {
    constexpr char kList = '|';
    read_columns(table, kList, csv_.columns);
    for (const CsvColumn& column : csv_.columns)
      require(column.separator == 0 || column.separator == kList, table,
              str(table.path("columns"), ": \"", column.name,
                  "\" has a separator, and JSON has lists: remove it"));
    csv_.header = true;
    read_unknown(table, csv_);
    read_csv_label(table, csv_.label, truth);
    table.refuse_unknown();
  }

 protected:
  Dataset of_cells(const std::vector<std::string>& files, const CsvSchema& schema,
                   const CsvOptions& options) const override {
    return json_lines(files, schema, options);
  }
};

// Lines "LABEL<tab>any text" are cells of which the second is the rest of the line.
class TextFormat final : public CellsFormat<TextFormat> {
 public:
  const char* name() const override { return "text"; }
  bool fixed_columns() const override { return true; }
  void read(TomlTable table, JobLabel& truth, const std::vector<std::string>&) override {
    csv_.columns = {{.name = "label", .dtype = DType::kString},
                    {.name = "text", .dtype = DType::kString}};
    csv_.label.column = "label";
    csv_.delimiter = read_character(table, "separator", '\t');
    csv_.quote = '\0';
    csv_.last_takes_rest = true;
    read_cell_label(table.table("label"), csv_.label, truth, false);
    if (csv_.label.positive.empty()) csv_.columns[0].dtype = DType::kFloat32;
    table.refuse_unknown();
  }
};

// The lines of the Criteo data sets.
class CriteoFormat final : public CellsFormat<CriteoFormat> {
 public:
  CriteoFormat() { csv_ = criteo_tsv_schema(); }
  const char* name() const override { return "criteo"; }
  bool fixed_columns() const override { return true; }
  bool has_table() const override { return false; }
  void read(TomlTable, JobLabel&, const std::vector<std::string>&) override {}
};

}  // namespace

std::vector<std::shared_ptr<JobFormat>> detail::cell_formats() {
  return {std::make_shared<CsvFormat>(), std::make_shared<TextFormat>(),
          std::make_shared<CriteoFormat>(), std::make_shared<JsonLinesFormat>()};
}

void name_format(const FileSource& source, toml::table& data) {
  const auto* csv = dynamic_cast<const CsvFiles*>(&source);
  if (!data.contains("format")) {
    const bool text = csv != nullptr && data.contains("text") && !data.contains("csv");
    data.insert("format", text ? "text" : source.format());
  }
  toml::table* const cells = data["csv"].as_table();
  if (csv != nullptr && cells != nullptr && !cells->contains("delimiter"))
    cells->insert("delimiter", std::string(1, csv->schema.delimiter));
}

}  // namespace cairn::tools
