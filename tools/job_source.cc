#include "tools/job_source.h"

#include "core/base/error.h"
#include "core/graph/ops.h"

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

// A job's label is the truth of a binary cross-entropy, so what lies outside [0, 1] is bad.
Dataset data_source(const Job& job, const std::vector<std::string>& files) {
  const JobData& data = job.data;
  const OnError on_error = data.skip_bad_rows ? OnError::kSkipAndCount : OnError::kFail;
  if (data.format == "records") return records_source(data, files);
  if (data.format == "tfrecords") return tfrecords_source(data, files, on_error);
  if (data.format == "libsvm") return Dataset::libsvm(files, data.libsvm, {on_error});
  return csv_source(data, files, on_error);
}

// ---- a part of the training data ----

constexpr std::int64_t kPrime = 0x7FFFFFFF;  // 2^31 - 1

// Whole numbers in [0, kPrime), without a pattern: of a text its hash; of a number x^5 modulo
// kPrime, which takes every value once, since 5 does not divide kPrime - 1. Which examples are held
// back follows from it, so it may never change.
Array place_of(const Array& value) {
  if (value.dtype() == DType::kString) return string_hash_bucket(value, kPrime);
  const Array prime(kPrime);
  const auto times = [&](const Array& a, const Array& b) { return floor_mod(a * b, prime); };
  const Array number = floor_mod(cast(value, DType::kInt64), prime);
  const Array mixed =
      floor_mod(number * Array(std::int64_t{0x5851F42D}) + Array(kPrime / 3), prime);
  const Array square = times(mixed, mixed);
  return times(times(square, square), mixed);
}

enum class Part : std::uint8_t { kTraining, kHeldBack };

void verify_split(const JobValidation& validation, const ElementSpec& element) {
  const TensorType& type = element.columns[element.find(validation.split_by)].type;
  if (type.shape.rank() == 0 && type.dtype != DType::kFloat32) return;
  throw InvalidArgumentError(str("validation.split_by: \"", validation.split_by, "\" is ",
                                 type.to_string(),
                                 "; a column of one text or whole number per example is wanted"));
}

Dataset part_of(const Job& job, const Dataset& data, Part part) {
  const std::string& column = job.validation.split_by;
  verify_split(job.validation, data.element_spec());
  const auto end = static_cast<std::int64_t>(job.validation.share * static_cast<double>(kPrime));
  return data.filter([=](const Batch& example) {
    const Array held_back = less(place_of(example.features[column]), Array(end));
    return part == Part::kHeldBack ? held_back : logical_not(held_back);
  });
}

}  // namespace

Dataset train_data(const Job& job) {
  const Dataset all = data_source(job, job.data.train);
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
