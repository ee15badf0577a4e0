// All formats' tables are read whichever is chosen; job_limits.cc refuses those that would not be
// used.
#include "tools/job_data.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "data/criteo_like.h"
#include "data/dataset.h"
#include "tools/job_columns.h"
#include "tools/job_files.h"
#include "tools/job_label.h"
#include "tools/job_service.h"
#include "tools/toml_table.h"

namespace cairn::tools {
namespace {

namespace fs = std::filesystem;

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

// ---- csv ----

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
  read_columns(table, separator, csv.columns);
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

void read_records(TomlTable table, RecordSchema& records, JobLabel& truth) {
  read_fields(table, records.fields);
  read_named_label(table, records.label, truth);
  table.refuse_unknown();
}

void read_libsvm(TomlTable table, LibsvmSchema& libsvm) {
  table.read("dimension", libsvm.dimension);
  table.read("zero_based", libsvm.zero_based);
  read_label(table.table("label"), libsvm.label, false);
  table.refuse_unknown();
}

void read_tfrecords(TomlTable table, ExampleSchema& examples, JobLabel& truth) {
  read_example_features(table, examples.features);
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
