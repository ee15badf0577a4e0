#include "tools/job_source.h"

#include <set>

#include "core/base/error.h"
#include "data/hash_split.h"

namespace cairn::tools {
namespace {

Dataset csv_source(const JobData& data, const std::vector<std::string>& files, OnError on_error) {
  CsvSchema schema = data.csv;
  schema.label.binary = !schema.label.column.empty();
  return Dataset::csv(files, schema, {.on_error = on_error, .names = OptionNames::kJobFile});
}

Dataset records_source(const JobData& data, const std::vector<std::string>& files) {
  RecordSchema schema = data.records;
  schema.binary_label = !schema.label.empty();
  return Dataset::records(files, schema);
}

Dataset tfrecords_source(const JobData& data, const std::vector<std::string>& files,
                         OnError on_error) {
  ExampleSchema schema = data.tfrecords;
  schema.binary_label = !schema.label.empty();
  return Dataset::tfrecords(files, schema, {.on_error = on_error});
}

// A job's label is the truth of a binary cross-entropy, so what lies outside [0, 1] is bad.
Dataset data_source(const Job& job, const std::vector<std::string>& files) {
  const JobData& data = job.data;
  const OnError on_error = data.skip_bad_rows ? OnError::kSkipAndCount : OnError::kFail;
  if (data.format == "records") return records_source(data, files);
  if (data.format == "tfrecords") return tfrecords_source(data, files, on_error);
  if (data.format == "libsvm") return Dataset::libsvm(files, data.libsvm, {on_error});
  return csv_source(data, files, on_error);
}

enum class Part : std::uint8_t { kTraining, kHeldBack };

Dataset part_of(const Job& job, const Dataset& data, Part part) {
  const JobValidation& validation = job.validation;
  const double middle = 1 - validation.share;
  try {
    return part == Part::kTraining ? hash_split(data, validation.split_by, 0, middle)
                                   : hash_split(data, validation.split_by, middle, 1);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("validation.split_by: ", error.what()));
  }
}

}  // namespace

// Dealt out first, so that each pipeline parses its own lines only. A data service deals it out by
// itself.
Dataset train_data(const Job& job, const InputContext& context) {
  Dataset all = data_source(job, job.data.train);
  if (!job.data.service.given) all = all.shard(context);
  return job.validation.split_by.empty() ? all : part_of(job, all, Part::kTraining);
}

std::vector<JudgedData> judged_data(const Job& job) {
  const JobValidation& validation = job.validation;
  std::vector<JudgedData> all;
  if (!validation.files.empty())
    all.push_back({"validation", "validation.files", data_source(job, validation.files)});
  if (!validation.split_by.empty())
    all.push_back({"validation", "data.train",
                   part_of(job, data_source(job, job.data.train), Part::kHeldBack)});
  if (!job.data.test.empty()) all.push_back({"test", "data.test", data_source(job, job.data.test)});
  return all;
}

// Without a header a column's place is what names it, so that it is read past; with one the file
// may lack it.
Dataset data_to_predict(const Job& job) {
  Job own = job;
  JobData& data = own.data;
  std::set<std::string> needless{data.label(), data.weight};
  for_each_named_column(
      job.features, [&](const std::string&, const std::string& column) { needless.erase(column); });
  const auto is_needless = [&](const auto& column) { return needless.contains(column.name); };
  if (data.csv.header)
    std::erase_if(data.csv.columns, is_needless);
  else
    for (CsvColumn& column : data.csv.columns) column.skip = column.skip || is_needless(column);
  std::erase_if(data.tfrecords.features, is_needless);
  data.csv.label = {};
  data.tfrecords.label = data.records.label = "";
  return data_source(own, {job.data.train.front()});
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
