#include "tools/job/run/resume.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "data/feature/printable.h"
#include "data/file/byte_source.h"
#include "model/fitted_columns.h"
#include "storage/any_disk.h"
#include "storage/base64.h"
#include "storage/manifest.h"
#include "tools/job/spec/job_format.h"

namespace cairn::tools {
namespace {

std::string quoted(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts)
    all += str(all.empty() ? "\"" : ", \"", printable(text), "\"");
  return all;
}

// The objective and the label's column, in words.
std::string label_text(const Job& job) {
  const JobData& data = job.data;
  const CsvLabel* const texts = data.form().label_texts();
  const CsvLabel label = texts == nullptr ? CsvLabel() : *texts;
  std::string text = str(job.model.objective, " of ", quoted({data.label()}));
  if (data.truth.above) text += str(", 1 above ", *data.truth.above);
  if (data.truth.below) text += str(", 1 below ", *data.truth.below);
  if (!label.positive.empty()) text += str(", 1 for ", quoted(label.positive));
  if (!label.negative.empty()) text += str(", 0 for ", quoted(label.negative));
  if (!job.model.class_texts.empty()) text += str(", classes ", quoted(job.model.class_texts));
  return text;
}

// Columns that hold what the model reads are not described by the columns of features(), nor is
// what they do not tell apart: a date that was fitted from one that the job gives.
void add_ready_columns(Json& columns, const Job& job, const FittedFeatures& features) {
  for (const IdFeature& id : features.ids)
    if (!job.data.has_columns() || id.value >= 0)
      columns.push_back(
          {{"name", id.name}, {"is", str("ids of ", id.rows, " rows")}, {"rows", id.rows}});
  for (const std::string& name : features.plain)
    if (!job.data.has_columns())
      columns.push_back({{"name", name}, {"is", "as it is"}, {"rows", 1}});
  for (const auto& [column, dates] : job.features.dates)
    if (dates.until)
      columns.push_back({{"name", column + "_age"},
                         {"is", str("days to ", date_text(*dates.until))},
                         {"rows", 1}});
  for (const JobFeatures::Cross& cross : job.features.crosses)
    columns.push_back({{"name", "a cross"},
                       {"is", str(quoted(cross.columns), " crossed into ", cross.buckets,
                                  cross.deep ? ", embedded" : "")},
                       {"rows", cross.buckets}});
}

Json features_json(const Job& job, const FittedFeatures& features) {
  Json all = fitted_json(columns_of_model(features));
  add_ready_columns(all["columns"], job, features);
  if (job.model.standardize)
    all["numeric"].push_back({{"column", job.data.label()},
                              {"mean", features.label.mean},
                              {"stddev", features.label.stddev},
                              {"log1p", false}});
  all["label"] = label_text(job);
  // Where the rows of each feature lie in a table that all of them share.
  for (const IdFeature& id : features.ids)
    all["ids"].push_back({{"name", id.name}, {"rows", id.rows}});
  for (const JobFeatures::Cross& cross : job.features.crosses)
    all["crosses"].push_back({{"columns", cross.columns}, {"buckets", cross.buckets}});
  return all;
}

// By which a step is a place in the data.
Json data_json(const Job& job, const FittedFeatures& features) {
  Json bytes = Json::array();
  for (const std::string& path : job.data.train) bytes.push_back(file_bytes(path));
  return {{"examples", features.examples},
          {"bytes", std::move(bytes)},
          {"batch", job.data.batch},
          {"shuffle", job.data.shuffle.value_or(0)},
          {"seed", job.data.shuffle.value_or(0) > 0 ? job.model.seed : 0}};
}

// Keys that `saved` lacks, as older checkpoints do, are not compared.
std::string data_difference(const Json& saved, const Json& now, const Job& job) {
  const auto differs = [&](const char* key) {
    return saved.contains(key) && saved[key] != now[key];
  };
  const auto both = [&](const std::string& what, const char* key) {
    return str(what, " is ", saved[key].dump(), " in the checkpoint and ", now[key].dump(), " now");
  };
  if (differs("examples")) return both("the number of training examples", "examples");
  if (differs("bytes")) {
    const Json &was = saved["bytes"], &is = now["bytes"];
    if (was.size() != is.size())
      return str("data.train is ", was.size(), " files in the checkpoint and ", is.size(), " now");
    for (std::size_t i = 0; i < is.size(); ++i)
      if (was[i] != is[i])
        return str(job.data.train[i], " has ", was[i].dump(), " bytes in the checkpoint and ",
                   is[i].dump(), " now");
  }
  for (const auto& [key, name] :
       {std::pair("batch", "data.batch"), std::pair("shuffle", "data.shuffle"),
        std::pair("seed", "model.seed")})
    if (differs(key)) return both(name, key);
  return "";
}

// The part of the features that the job file states, without what was fitted to the data.
Json said(const Json& features) {
  return {{"columns", features.value("columns", Json::array())},
          {"numeric", Json::array()},
          {"vocabularies", Json::object()}};
}

// The logarithm counts as part of the feature: a mean of log(1 + x) is not one of x.
std::optional<NumericInput> saved_numeric(const Json& saved, const NumericInput& wanted) {
  for (const Json& one : saved.value("numeric", Json::array()))
    if (one.value("column", "") == wanted.column && one.value("log1p", false) == wanted.log1p &&
        one.contains("days_until") == wanted.days_until.has_value()) {
      NumericInput found{wanted.column, one.value("mean", 0.0f), one.value("stddev", 1.0f),
                         wanted.log1p};
      if (wanted.days_until) found.days_until = one["days_until"].get<std::int64_t>();
      return found;
    }
  return std::nullopt;
}

// In the order that they were saved in: a value's place is its id.
std::vector<std::string> values_of(const Json& vocabulary) {
  std::vector<std::string> values;
  for (const Json& value : vocabulary)
    values.push_back(storage::from_base64(value.get<std::string>()));
  return values;
}

}  // namespace

Json metadata_of(const Job& job, const FittedFeatures& features, std::int64_t steps,
                 std::int64_t data_began) {
  Json own = features_json(job, features);
  Json data = data_json(job, features);
  if (features.of_data) {
    Json of_data = features_json(job, *features.of_data);
    if (!first_difference(own, of_data).empty()) data["features"] = std::move(of_data);
  }
  return {{"job", job.name},
          {"steps", steps},
          {"data_began", data_began},
          {"toml", job.text},
          {"features", std::move(own)},
          {"data", std::move(data)}};
}

Json saved_metadata(const std::string& checkpoint) {
  return parse_json(storage::read_manifest(storage::any_disk(), checkpoint).metadata,
                    "the metadata of " + checkpoint);
}

SavedJob::SavedJob(const std::string& checkpoint, ResumeOptions options)
    : SavedJob(saved_metadata(checkpoint), "the checkpoint " + checkpoint, options) {}

SavedJob::SavedJob(Json metadata, std::string where, ResumeOptions options)
    : metadata_(std::move(metadata)), where_(std::move(where)), options_(options) {}

Json SavedJob::part(const char* name) const {
  return metadata_.is_object() ? metadata_.value(name, Json::object()) : Json::object();
}

// A checkpoint without a job's name is of a program that uses the API; restoring compares its
// variables anyway.
void SavedJob::verify_job(const Job& job) const {
  if (options_.partial || !metadata_.is_object() || !metadata_.contains("job") ||
      metadata_["job"] == job.name)
    return;
  throw FailedPreconditionError(str(
      where_, " is of job \"", metadata_["job"].get<std::string>(), "\", this job is \"", job.name,
      options_.journal
          ? "\": go on with its own job file, or begin anew with another --journal"
          : "\": resume it with its own job file; to begin with those of its variables that "
            "this job has too, give --partial and --new-data"));
}

// The job file is compared first: where it differs, the fitted values differ for that reason.
void SavedJob::verify_features(const Job& job, const FittedFeatures& fitted) const {
  const Json saved = part("features"), now = features_json(job, fitted);
  const Compare which = options_.partial ? Compare::kCommon : Compare::kAll;
  std::string found =
      saved.contains("columns") ? first_difference(said(saved), said(now), which) : "";
  if (found.empty() && !options_.partial && saved.contains("label") &&
      saved["label"] != now["label"])
    found = str("the label is ", saved["label"].get<std::string>(), " in the checkpoint and ",
                now["label"].get<std::string>(), " now");
  if (!found.empty())
    throw FailedPreconditionError(
        str(options_.journal ? "" : "--resume: ", where_, " is of another model: ", found,
            "; write it in the job file as it was, or train anew, ",
            options_.journal   ? "with another --journal"
            : options_.partial ? "without --resume"
                               : "without --resume; --partial takes over what is alike"));
  if (options_.new_data) return;
  const Json data = part("data");
  found = first_difference(data.value("features", saved), now, which);
  if (found.empty()) found = data_difference(data, data_json(job, fitted), job);
  if (!found.empty())
    throw FailedPreconditionError(
        str(options_.journal ? "" : "--resume: ", where_, " is of other data: ", found,
            options_.journal
                ? "; go on with the data that it was trained on, or train anew, with another "
                  "--journal"
                : "; resume on the data that it was trained on, or give --new-data to go on with "
                  "its model over this data, from the data's beginning: features stay as they were "
                  "fitted then, and values that were in no vocabulary count as unknown"));
}

// New data with other values would otherwise give the same ids other meanings, and the model would
// be wrong without any error.
FittedFeatures SavedJob::features(const Job& job, const FittedFeatures& fitted) const {
  const Json saved = part("features");
  if (saved.empty() && !options_.new_data) return fitted;
  const auto missing = [&](const std::string& column) {
    if (options_.partial) return;
    throw FailedPreconditionError(
        str(where_, " does not say what was fitted to column \"", column,
            "\" when its model was trained: --resume wants a checkpoint that a job with this "
            "feature saved"));
  };
  const auto take = [&](NumericInput& input) {
    if (const auto found = saved_numeric(saved, input))
      input = *found;
    else
      missing(input.column);
  };
  FittedFeatures made = fitted;
  made.of_data = std::make_shared<const FittedFeatures>(fitted);
  const Json vocabularies = saved.value("vocabularies", Json::object());
  for (FeatureColumn& column : made.columns) {
    for (NumericInput& input : column.numerics) take(input);
    if (column.kind != FeatureColumn::Kind::kVocabulary || options_.own_vocabularies) continue;
    if (!vocabularies.contains(column.name)) {
      missing(column.name);
      continue;
    }
    column.values = values_of(vocabularies[column.name]);
    for (IdFeature& id : made.ids)
      if (id.name == column.name) id.rows = column.ids();
  }
  if (job.model.standardize) {
    NumericInput label{job.data.label(), fitted.label.mean, fitted.label.stddev};
    take(label);
    made.label = {label.mean, label.stddev};
  }
  return made;
}

std::int64_t SavedJob::data_began() const {
  return metadata_.is_object() ? metadata_.value("data_began", std::int64_t{0}) : 0;
}

}  // namespace cairn::tools
