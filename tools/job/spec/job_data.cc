#include "tools/job/spec/job_data.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "tools/job/spec/job_format.h"
#include "tools/job/spec/job_service.h"
#include "tools/job/toml/job_files.h"
#include "tools/job/toml/job_label.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

namespace fs = std::filesystem;

// "part-1.csv.gz", "part-1.csv.zst" -> ".csv"
std::string ending(const std::string& path) {
  fs::path name = fs::path(path).filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  return name.extension().string();
}

// The format whose files most likely end like that; empty: it names none.
std::string format_of_ending(const std::string& ending) {
  for (const JobFormatPtr& format : job_formats())
    if (std::ranges::count(format->endings(), ending) > 0) return format->name();
  return "";
}

// By the files' ending, or else by the only format whose table is there.
std::string guessed_format(const TomlTable& table, const std::vector<std::string>& files) {
  if (const std::string known = format_of_ending(telling_ending(files)); !known.empty())
    return known;
  std::string only;
  for (const std::string& format : data_formats()) {
    if (!table.has(format)) continue;
    if (!only.empty()) return "csv";
    only = format;
  }
  return only.empty() ? "csv" : only;
}

// All formats' tables are read whichever is chosen; job_limits.cc refuses those that would not be
// used.
void read_formats(TomlTable& table, JobData& data) {
  for (const JobFormatPtr& each : job_formats()) {
    const std::shared_ptr<JobFormat> format = make_job_format(each->name());
    JobLabel truth;
    if (format->has_table()) format->read(table.table(format->name()), truth, data.train);
    if (format->name() != data.format) continue;
    data.schema = format;
    data.truth = truth;
  }
}

}  // namespace

// `_SUCCESS` stands before the parts of Spark.
std::string telling_ending(const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (!format_of_ending(ending(file)).empty()) return ending(file);
  return "";
}

bool JobData::has_columns() const { return form().form() == FeatureForm::kColumns; }

const std::string& JobData::label() const { return form().label(); }

std::string JobData::label_key() const { return form().label_key(); }

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
  read_formats(table, data);
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
