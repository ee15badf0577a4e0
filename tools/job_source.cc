#include "tools/job_source.h"

#include "core/base/error.h"

namespace cairn::tools {
namespace {

Dataset csv_source(const JobData& data, const std::vector<std::string>& files, OnError on_error) {
  CsvSchema schema = data.csv;
  schema.label.binary = true;
  return Dataset::csv(files, schema, {.on_error = on_error, .names = OptionNames::kJobFile});
}

Dataset records_source(const JobData& data, const std::vector<std::string>& files) {
  RecordSchema schema = data.records;
  schema.binary_label = true;
  return Dataset::records(files, schema);
}

Dataset tfrecords_source(const JobData& data, const std::vector<std::string>& files,
                         OnError on_error) {
  ExampleSchema schema = data.tfrecords;
  schema.binary_label = true;
  return Dataset::tfrecords(files, schema, {.on_error = on_error});
}

}  // namespace

// A job's label is the truth of a binary cross-entropy, so what lies outside [0, 1] is bad.
Dataset data_source(const Job& job, const std::vector<std::string>& files) {
  const JobData& data = job.data;
  const OnError on_error = data.skip_bad_rows ? OnError::kSkipAndCount : OnError::kFail;
  if (data.format == "records") return records_source(data, files);
  if (data.format == "tfrecords") return tfrecords_source(data, files, on_error);
  if (data.format == "libsvm") return Dataset::libsvm(files, data.libsvm, {on_error});
  return csv_source(data, files, on_error);
}

// A label that is text has no value until the job says which texts count as 1.
void verify_label(const Job& job) {
  const JobData& data = job.data;
  const std::string& label = data.label();
  const std::string key = data.format == "csv" ? "data.csv.label" : data.label_key();
  if (label.empty())
    throw InvalidArgumentError(str(key, " names no column: a job needs one to predict"));
  for (const CsvColumn& column : data.csv.columns)
    if (data.is_text() && column.name == label && column.dtype == DType::kString &&
        data.csv.label.positive.empty())
      throw InvalidArgumentError(str(key, ": column \"", label,
                                     "\" holds text: say with `positive` which texts count as 1"));
  for (const ExampleFeature& feature : data.tfrecords.features)
    if (data.format == "tfrecords" && feature.name == label &&
        (feature.dtype == DType::kString || feature.ragged || feature.shape.rank() > 0))
      throw InvalidArgumentError(
          str(key, ": \"", label, "\" must be one number of each example, float32 or int64"));
}

}  // namespace cairn::tools
