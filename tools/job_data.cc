// All formats' tables are read whichever is chosen; job_limits.cc refuses those that would not be
// used.
#include "tools/job_data.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "data/criteo_like.h"
#include "data/dataset.h"
#include "tools/job_files.h"
#include "tools/job_label.h"
#include "tools/job_service.h"
#include "tools/toml_table.h"

namespace cairn::tools {
namespace {

namespace fs = std::filesystem;

void require(bool condition, const TomlTable& table, const std::string& message) {
  if (!condition) throw InvalidArgumentError(str(table.file(), ": ", message));
}

// ---- formats ----

// "part-1.csv.gz", "part-1.csv.zst" -> ".csv"
std::string ending(const std::string& path) {
  fs::path name = fs::path(path).filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  return name.extension().string();
}

const std::map<std::string, std::string>& formats_by_ending() {
  static const std::map<std::string, std::string> all = {{".csv", "csv"},
                                                         {".tsv", "csv"},
                                                         {".svm", "libsvm"},
                                                         {".libsvm", "libsvm"},
                                                         {".tfrecord", "tfrecords"},
                                                         {".tfrecords", "tfrecords"}};
  return all;
}

// The first one that tells a format; empty: none does. `_SUCCESS` stands before the parts of Spark.
std::string telling_ending(const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (formats_by_ending().contains(ending(file))) return ending(file);
  return "";
}

// By the files' ending, or else by the only format whose table is there.
std::string guessed_format(const TomlTable& table, const std::vector<std::string>& files) {
  const auto known = formats_by_ending().find(telling_ending(files));
  if (known != formats_by_ending().end()) return known->second;
  std::string only;
  for (const std::string& format : data_formats()) {
    if (!table.has(format)) continue;
    if (!only.empty()) return "csv";
    only = format;
  }
  return only.empty() ? "csv" : only;
}

// ---- columns ----

// One character; "\t" and "tab" both mean a tab, since TOML's literal strings do not know the
// escape.
char read_character(TomlTable& table, const std::string& key, char otherwise) {
  std::string text(1, otherwise);
  table.read(key, text);
  if (text == "\\t" || text == "tab") return '\t';
  require(text.size() == 1, table, str(table.path(key), " must be one character"));
  return text[0];
}

// "int64", "int64[]", "float32[8]".
struct TypeText {
  DType dtype = DType::kString;
  bool list = false;       // of any length
  std::int64_t count = 0;  // of a list of this length; 0: one value
};

// The count of "numeric:float32[8]", which begins at `begin`: "8]".
std::int64_t read_count(const TomlTable& table, const std::string& key, const std::string& text,
                        std::size_t begin) {
  std::int64_t count = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + begin, last, count);
  require(error == std::errc() && count >= 1 && end + 1 == last && *end == ']', table,
          str(table.path(key), ": \"", text,
              "\": the count must be a whole number from 1 on, in brackets at the end"));
  return count;
}

TypeText parse_type(const TomlTable& table, const std::string& key, const std::string& text) {
  TypeText type;
  const std::size_t bracket = text.find('[');
  type.list = text.ends_with("[]");
  if (bracket != std::string::npos && !type.list)
    type.count = read_count(table, key, text, bracket + 1);
  try {
    type.dtype = parse_dtype(text.substr(0, bracket));
  } catch (const Error& e) {
    throw InvalidArgumentError(
        str(table.file(), ": ", table.path(key), ": \"", text, "\": ", e.what()));
  }
  return type;
}

// What stands for a cell without a value; numbers need no quotes.
std::optional<std::string> read_default(TomlTable& table) {
  const toml::node* found = table.node("default");
  if (found == nullptr) return std::nullopt;
  if (const auto text = found->value_exact<std::string>()) return *text;
  if (const auto number = found->value_exact<std::int64_t>()) return std::to_string(*number);
  if (const auto number = found->value_exact<double>()) {
    // As many digits as tell it from any other number.
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, *number).ptr);
  }
  table.fail(*found, "default", "a number or a text");
}

// Visits a list of texts and tables, or one of them.
template <typename OfText, typename OfTable>
void each_column(TomlTable& table, const std::string& key, OfText of_text, OfTable of_table) {
  const toml::node* list = table.node(key);
  if (list == nullptr) return;
  const auto visit = [&](const toml::node& item) {
    if (const auto text = item.value_exact<std::string>()) return of_text(*text);
    if (!item.is_table())
      table.fail(item, key, "a list of texts (\"name:dtype\") and tables ({name = \"...\"})");
    TomlTable one(item.as_table(), table.path(key), table.file());
    of_table(one);
    one.refuse_unknown();
  };
  if (const toml::array* array = list->as_array())
    for (const toml::node& item : *array) visit(item);
  else
    visit(*list);
}

// Cuts "age:int32" at the last colon, since names may hold some. The type is empty if there is
// none.
std::pair<std::string, std::string> name_and_type(const TomlTable& table, const std::string& key,
                                                  const std::string& text) {
  const auto colon = text.rfind(':');
  const std::string name = text.substr(0, colon);
  require(!name.empty(), table, str(table.path(key), ": a column has no name"));
  return {name, colon == std::string::npos ? "" : text.substr(colon + 1)};
}

// ---- csv ----

void set_type(const TomlTable& table, const std::string& text, char separator, CsvColumn& column) {
  column.dtype = DType::kString;
  if (text.empty()) return;
  const TypeText type = parse_type(table, "columns", text);
  require(
      type.count == 0, table,
      str(table.path("columns"), ": \"", text, "\" of \"", column.name,
          "\": a cell holds one value, or any number of them (", dtype_name(type.dtype), "[])"));
  column.dtype = type.dtype;
  if (type.list) column.separator = separator;
}

// "age:int32"; "age", which is a string; "tags:string[]"; "-fnlwgt", which is read past.
CsvColumn parse_column(const TomlTable& table, std::string text, char separator) {
  CsvColumn column;
  column.skip = text.starts_with("-");
  if (column.skip) text.erase(0, 1);
  const auto [name, type] = name_and_type(table, "columns", text);
  column.name = name;
  set_type(table, type, separator, column);
  return column;
}

// An indicator tells of the value, so the value itself may be anything: 0 unless it is said.
CsvColumn read_column(TomlTable& one, const TomlTable& table, char separator) {
  CsvColumn column;
  one.read("name", column.name);
  require(!column.name.empty(), table, str(table.path("columns"), ": a column has no name"));
  std::string type;
  one.read("dtype", type);
  set_type(table, type, read_character(one, "separator", separator), column);
  one.read("unknown", column.unknown);
  one.read("indicator", column.missing_indicator);
  column.default_value = read_default(one);
  const bool one_number = column.dtype != DType::kString && column.separator == 0;
  if (column.missing_indicator && one_number && !column.default_value) column.default_value = "0";
  return column;
}

// Every column has the texts behind the first of `unknown`.
void read_unknown(TomlTable& table, CsvSchema& csv) {
  std::vector<std::string> unknown;
  table.read("unknown", unknown);
  if (unknown.empty()) return;
  csv.unknown = unknown.front();
  for (CsvColumn& column : csv.columns)
    column.unknown.insert(column.unknown.end(), unknown.begin() + 1, unknown.end());
}

void read_csv(TomlTable table, CsvSchema& csv, JobLabel& truth, char delimiter) {
  const char separator = read_character(table, "separator", '|');
  each_column(
      table, "columns",
      [&](const std::string& text) { csv.columns.push_back(parse_column(table, text, separator)); },
      [&](TomlTable& one) { csv.columns.push_back(read_column(one, table, separator)); });
  csv.delimiter = read_character(table, "delimiter", delimiter);
  std::string quote = "\"";
  table.read("quote", quote);
  require(quote.size() <= 1, table,
          str(table.path("quote"), " must be one character, or empty: quotes are ordinary then"));
  csv.quote = quote.empty() ? '\0' : quote[0];
  table.read("cell_lines_max", csv.cell_lines_max);
  table.read("strict", csv.strict);
  table.read("header", csv.header);
  table.read("comment", csv.comment);
  read_unknown(table, csv);
  read_csv_label(table, csv.label, truth);
  table.refuse_unknown();
}

// Lines "LABEL<tab>any text" are cells of which the second is the rest of the line.
void read_text(TomlTable table, CsvSchema& csv, JobLabel& truth) {
  CsvSchema made;
  made.columns = {{.name = "label", .dtype = DType::kString},
                  {.name = "text", .dtype = DType::kString}};
  made.label.column = "label";
  made.delimiter = read_character(table, "separator", '\t');
  made.quote = '\0';
  made.last_takes_rest = true;
  read_cell_label(table.table("label"), made.label, truth, false);
  if (made.label.positive.empty()) made.columns[0].dtype = DType::kFloat32;
  table.refuse_unknown();
  csv = std::move(made);
}

// ---- other formats ----

// "label:float32", "numeric:float32[8]"
// A name may not hold a colon here, since the first one ends it.
void read_records(TomlTable table, RecordSchema& records, JobLabel& truth) {
  std::vector<std::string> fields;
  table.read("fields", fields);
  read_named_label(table, records.label, truth);
  for (const std::string& text : fields) {
    const auto colon = text.find(':');
    require(colon != std::string::npos, table,
            str(table.path("fields"), ": \"", text,
                "\" must read \"name:dtype\" or \"name:dtype[count]\""));
    const auto bracket = text.find('[');
    RecordField field;
    if (bracket != std::string::npos) field.count = read_count(table, "fields", text, bracket + 1);
    field.name = text.substr(0, colon);
    field.dtype = parse_dtype(
        text.substr(colon + 1, bracket == std::string::npos ? bracket : bracket - colon - 1));
    records.fields.push_back(field);
  }
  table.refuse_unknown();
}

void read_libsvm(TomlTable table, LibsvmSchema& libsvm) {
  table.read("dimension", libsvm.dimension);
  table.read("zero_based", libsvm.zero_based);
  read_label(table.table("label"), libsvm.label, false);
  table.refuse_unknown();
}

ExampleFeature example_feature(const TomlTable& table, const std::string& name,
                               const std::string& type_text) {
  require(!type_text.empty(), table,
          str(table.path("features"), ": \"", name, "\" needs a dtype: \"", name,
              ":float32\", int64 or string"));
  const TypeText type = parse_type(table, "features", type_text);
  ExampleFeature feature{.name = name, .dtype = type.dtype, .ragged = type.list};
  if (type.count > 0) feature.shape = {type.count};
  return feature;
}

void read_tfrecords(TomlTable table, ExampleSchema& examples, JobLabel& truth) {
  each_column(
      table, "features",
      [&](const std::string& text) {
        const auto [name, type] = name_and_type(table, "features", text);
        examples.features.push_back(example_feature(table, name, type));
      },
      [&](TomlTable& one) {
        std::string name, type;
        one.read("name", name);
        one.read("dtype", type);
        require(!name.empty(), table, str(table.path("features"), ": a feature has no name"));
        examples.features.push_back(example_feature(table, name, type));
        examples.features.back().default_value = read_default(one);
      });
  read_named_label(table, examples.label, truth);
  table.refuse_unknown();
}

}  // namespace

const std::vector<std::string>& data_formats() {
  static const std::vector<std::string> all = {"csv",       "records", "libsvm",
                                               "tfrecords", "text",    "criteo"};
  return all;
}

const std::string& JobData::label() const {
  if (format == "records") return records.label;
  if (format == "tfrecords") return tfrecords.label;
  return is_text() ? csv.label.column : libsvm.label.column;
}

std::string JobData::label_key() const {
  if (format == "csv") return "data.csv.label.column";
  return str("data.", format, ".label");
}

void read_data(TomlTable table, JobData& data) {
  read_files(table, "train", data.train);
  read_files(table, "test", data.test);
  data.format = guessed_format(table, data.train);
  table.read("format", data.format);
  table.read("batch", data.batch);
  table.read("epochs", data.epochs);
  table.read("steps", data.steps);
  table.read("shuffle", data.shuffle);
  bool skip_bad_rows = false;
  table.read("skip_bad_rows", skip_bad_rows);
  data.options.on_error = skip_bad_rows ? OnError::kSkipAndCount : OnError::kFail;
  std::string empty_files = "error";
  table.read("empty_files", empty_files);
  table.one_of("empty_files", empty_files, {"error", "skip"});
  data.options.empty_files = empty_files == "skip" ? EmptyFiles::kSkip : EmptyFiles::kFail;
  table.read("where", data.where);
  table.read("test_where", data.test_where);
  table.read("weight", data.weight);
  table.read("group", data.group);
  table.read("candidate", data.candidate);
  table.read("visitation", data.visitation);
  const bool tabs = telling_ending(data.train) == ".tsv";
  std::map<std::string, JobLabel> truths;  // by format
  read_csv(table.table("csv"), data.csv, truths["csv"], tabs ? '\t' : ',');
  CsvSchema text;
  read_text(table.table("text"), text, truths["text"]);
  if (data.format == "text") data.csv = text;
  if (data.format == "criteo") data.csv = criteo_tsv_schema();
  read_records(table.table("records"), data.records, truths["records"]);
  read_libsvm(table.table("libsvm"), data.libsvm);
  read_tfrecords(table.table("tfrecords"), data.tfrecords, truths["tfrecords"]);
  data.truth = truths[data.format];
  TomlTable service = table.table("service");
  if (table.has("service")) data.service = read_service(std::move(service));
  table.refuse_unknown();
  require(!data.train.empty(), table, "data.train names no file");
}

void read_validation(TomlTable table, JobValidation& validation) {
  read_files(table, "files", validation.files);
  table.read("split_by", validation.split_by);
  table.read("where", validation.where);
  const bool share = table.has("share");
  table.read("share", validation.share);
  table.refuse_unknown();
  require(validation.files.empty() || validation.split_by.empty(), table,
          "validation.files are data of their own, and validation.split_by takes a part of the "
          "training data: give one of them");
  require(validation.where.empty() || validation.given(), table,
          "validation.where is of validation.files or validation.split_by, and neither is given");
  require(!share || !validation.split_by.empty(), table,
          "validation.share is a share of the values of validation.split_by, which is not given");
}

}  // namespace cairn::tools
