#include "tools/resume.h"

#include <algorithm>

#include "core/base/disk.h"
#include "core/base/error.h"
#include "storage/base64.h"
#include "storage/manifest.h"

namespace cairn::tools {
namespace {

// Vocabulary values are bytes of the data, and JSON holds only valid text, so they are stored as
// base64.
Json fit_json(const Job& job, const FittedFeatures& features) {
  Json numeric = Json::array();
  Json vocabularies = Json::object();
  for (const FeatureColumn& column : features.columns) {
    for (const NumericInput& input : column.numerics)
      numeric.push_back({{"column", input.column},
                         {"mean", input.mean},
                         {"stddev", input.stddev},
                         {"log1p", input.log1p}});
    if (column.kind != FeatureColumn::Kind::kVocabulary) continue;
    Json values = Json::array();
    for (const std::string& value : column.values) values.push_back(storage::to_base64(value));
    vocabularies[column.name] = std::move(values);
  }
  if (job.model.standardize)
    numeric.push_back({{"column", job.data.label()},
                       {"mean", features.label.mean},
                       {"stddev", features.label.stddev},
                       {"log1p", false}});
  return {{"numeric", std::move(numeric)}, {"vocabularies", std::move(vocabularies)}};
}

[[noreturn]] void refuse(const std::string& checkpoint, const std::string& column) {
  throw FailedPreconditionError(str("the checkpoint ", checkpoint,
                                    " does not say what was fitted to column \"", column,
                                    "\" when its model was trained: --new-data wants a checkpoint "
                                    "that a job with this feature saved"));
}

// The logarithm counts as part of the feature: a mean of log(1 + x) is not one of x.
NumericInput saved_numeric(const Json& saved, const NumericInput& wanted,
                           const std::string& checkpoint) {
  for (const Json& one : saved.value("numeric", Json::array())) {
    if (one.value("column", "") != wanted.column || one.value("log1p", false) != wanted.log1p)
      continue;
    return {wanted.column, one.value("mean", 0.0f), one.value("stddev", 1.0f), wanted.log1p};
  }
  refuse(checkpoint, wanted.column);
}

// In the order that they were saved in: a value's place is its id.
std::vector<std::string> saved_vocabulary(const Json& saved, const std::string& column,
                                          const std::string& checkpoint) {
  const Json all = saved.value("vocabularies", Json::object());
  if (!all.contains(column)) refuse(checkpoint, column);
  std::vector<std::string> values;
  for (const Json& value : all[column])
    values.push_back(storage::from_base64(value.get<std::string>()));
  return values;
}

}  // namespace

Json saved_metadata(const std::string& checkpoint) {
  const storage::Manifest manifest = storage::read_manifest(system_disk(), checkpoint);
  return parse_json(manifest.metadata, "the metadata of " + checkpoint);
}

Json metadata_of(const Job& job, const FittedFeatures& features, std::int64_t steps,
                 std::int64_t data_began) {
  return {{"job", job.name},
          {"steps", steps},
          {"data_began", data_began},
          {"toml", job.text},
          {"features", fit_json(job, features)}};
}

// A checkpoint without a job's name is of a program that uses the API; restoring compares its
// variables anyway.
void verify_job(const Json& metadata, const Job& job, const std::string& checkpoint) {
  if (!metadata.is_object() || !metadata.contains("job") || metadata["job"] == job.name) return;
  throw FailedPreconditionError(
      str("the checkpoint ", checkpoint, " is of job \"", metadata["job"].get<std::string>(),
          "\", this job is \"", job.name,
          "\": resume it with its own job file; to begin with those of its variables that this"
          " job has too, give --partial and --new-data"));
}

// The request is the job's, the answers are the checkpoint's. New data with other values would
// otherwise give the same ids other meanings, and the model would be wrong without any error.
FittedFeatures features_as_saved(const Json& metadata, const Job& job,
                                 const std::string& checkpoint) {
  const FitRequest request = fit_request(job);
  const Json saved =
      metadata.is_object() ? metadata.value("features", Json::object()) : Json::object();
  Fit known;
  for (const NumericInput& wanted : request.numeric)
    known.numeric.push_back(saved_numeric(saved, wanted, checkpoint));
  for (const std::string& column : request.vocabularies)
    known.vocabularies.push_back(saved_vocabulary(saved, column, checkpoint));
  return fit_features(job, &known);
}

}  // namespace cairn::tools
