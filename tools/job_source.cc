#include "tools/job_source.h"

#include <set>

#include "core/base/error.h"
#include "data/hash_split.h"
#include "data/stage_spec.h"
#include "tools/job_conditions.h"

namespace cairn::tools {
namespace {

using Conditions = std::vector<std::string>;

// Whether what the label's column holds is the truth of a binary cross-entropy.
bool is_binary(const Job& job) {
  return job.model.objective == "binary" && !job.data.truth.is_threshold();
}

// The texts of the label's classes; where the job gives their number only, the numbers below it.
std::vector<std::string> label_classes(const Job& job) {
  std::vector<std::string> texts = job.model.class_texts;
  if (texts.empty() && job.model.objective == "multiclass")
    for (std::int64_t i = 0; i < job.model.classes; ++i) texts.push_back(std::to_string(i));
  return texts;
}

// The number of classes if the label is a class's number; else 0.
std::int64_t classes_of(const Job& job, const std::string& label) {
  return job.model.objective == "multiclass" && !label.empty() ? job.model.classes : 0;
}

// Bounds that do not fit the column are refused later, with the job's key (tell_bags()).
IdRange ids_of(const Job& job, const std::string& column, std::int64_t values) {
  IdRange ids = job.features.id_range(column);
  const auto bounds = static_cast<std::int64_t>(ids.rows.size());
  return bounds == 1 || bounds == values ? ids : IdRange{};
}

Dataset csv_source(const Job& job, const std::vector<std::string>& files, const Conditions& where) {
  CsvSchema schema = job.data.csv;
  for (CsvColumn& column : schema.columns)
    if (is_whole(column.dtype)) column.ids = ids_of(job, column.name, 1);
  if (!schema.label.column.empty()) {
    schema.label.binary = is_binary(job);
    schema.label.skip_unknown = job.data.truth.skip_unknown;
    schema.label.classes = label_classes(job);
  }
  schema.where = where;
  return Dataset::csv(files, schema, {job.data.options.on_error, job.data.options.empty_files});
}

Dataset records_source(const Job& job, const std::vector<std::string>& files) {
  RecordSchema schema = job.data.records;
  for (RecordField& field : schema.fields)
    if (is_whole(field.dtype)) field.ids = ids_of(job, field.name, field.count);
  schema.binary_label = is_binary(job) && !schema.label.empty();
  schema.label_classes = classes_of(job, schema.label);
  return Dataset::records(files, schema, job.data.options);
}

Dataset tfrecords_source(const Job& job, const std::vector<std::string>& files) {
  ExampleSchema schema = job.data.tfrecords;
  for (ExampleFeature& feature : schema.features)
    if (is_whole(feature.dtype))
      feature.ids = ids_of(job, feature.name, feature.ragged ? 1 : feature.shape.elements());
  schema.binary_label = is_binary(job) && !schema.label.empty();
  schema.label_classes = classes_of(job, schema.label);
  return Dataset::tfrecords(
      files, schema,
      {.on_error = job.data.options.on_error, .empty_files = job.data.options.empty_files});
}

// The truth of a binary cross-entropy lies in [0, 1], and anything else is bad. Lines are left out
// as they are parsed; of the other formats every example is made first.
Dataset data_source(const Job& job, const std::vector<std::string>& files,
                    const Conditions& where) {
  const JobData& data = job.data;
  if (data.format == "records") return filtered(records_source(job, files), where);
  if (data.format == "tfrecords") return filtered(tfrecords_source(job, files), where);
  if (data.format == "libsvm") {
    LibsvmSchema schema = data.libsvm;
    schema.label.binary = is_binary(job);
    schema.qid = job.data.group;
    return Dataset::libsvm(files, schema, data.options);
  }
  return csv_source(job, files, where);
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

namespace {

// By the hash of their value, so that a list is dealt out as a whole; every pipeline parses all.
Dataset lists_of(const Job& job, const Dataset& all, const InputContext& context) {
  const auto share = [&](std::int64_t end) {
    return static_cast<double>(end) / static_cast<double>(context.num_input_pipelines);
  };
  if (context.num_input_pipelines == 1) return all;
  return hash_split(all, job.data.group, share(context.input_pipeline_id),
                    share(context.input_pipeline_id + 1));
}

}  // namespace

// Dealt out first, so that each pipeline parses its own lines only. A data service deals it out by
// itself.
Dataset train_data(const Job& job, const InputContext& context) {
  Dataset all = data_source(job, job.data.train, job.data.where);
  if (job.model.ranks())
    all = lists_of(job, all, context);
  else if (!job.data.service.given)
    all = all.shard(context);
  return job.validation.split_by.empty() ? all : part_of(job, all, Part::kTraining);
}

std::vector<JudgedData> judged_data(const Job& job) {
  const JobValidation& validation = job.validation;
  std::vector<JudgedData> all;
  if (!validation.files.empty())
    all.push_back(
        {kValidation, "validation.files", data_source(job, validation.files, validation.where)});
  if (!validation.split_by.empty()) {
    Conditions where = job.data.where;
    where.insert(where.end(), validation.where.begin(), validation.where.end());
    all.push_back({kValidation, "data.train",
                   part_of(job, data_source(job, job.data.train, where), Part::kHeldBack)});
  }
  if (!job.data.test.empty())
    all.push_back({"test", "data.test", data_source(job, job.data.test, job.data.test_where)});
  return all;
}

namespace {

void verify_cell_label(const Job& job, const std::string& key, const CsvColumn& column) {
  const bool texts = !job.data.csv.label.positive.empty();
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

}  // namespace

// Without a header a column's place is what names it, so that it is read past; with one the file
// may lack it.
Dataset data_to_predict(const Job& job) {
  Job own = job;
  JobData& data = own.data;
  std::set<std::string> needless{data.label(), data.weight, data.identity()};
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
  own.data.truth = {};
  own.data.group.clear();
  own.data.candidate.clear();
  return data_source(own, {job.data.train.front()}, {});
}

// A label that is text has no value until the job says which texts count as 1.
void verify_label(const Job& job) {
  const JobData& data = job.data;
  if (job.model.objective == "retrieval") return;  // it has none
  const std::string& label = data.label();
  const std::string key = data.format == "csv" ? "data.csv.label" : data.label_key();
  if (label.empty())
    throw InvalidArgumentError(str(key, " names no column: a job needs one to predict"));
  for (const CsvColumn& column : data.csv.columns)
    if (data.is_text() && column.name == label) verify_cell_label(job, key, column);
  for (const ExampleFeature& feature : data.tfrecords.features)
    if (data.format == "tfrecords" && feature.name == label &&
        (feature.dtype == DType::kString || feature.ragged || feature.shape.rank() > 0))
      throw InvalidArgumentError(
          str(key, ": \"", label, "\" must be one number of each example, float32 or int64"));
}

}  // namespace cairn::tools
