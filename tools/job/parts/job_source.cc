#include "tools/job/parts/job_source.h"

#include <set>

#include "core/base/error.h"
#include "data/dataset/hash_split.h"
#include "tools/job/spec/job_format.h"

namespace cairn::tools {
namespace {

using Conditions = std::vector<std::string>;

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
  Dataset all = job.data.form().source(job, job.data.train, job.data.where);
  if (job.model.ranks())
    all = lists_of(job, all, context);
  else if (!job.data.service.given)
    all = all.shard(context);
  return job.validation.split_by.empty() ? all : part_of(job, all, Part::kTraining);
}

std::vector<EvaluationData> eval_data(const Job& job) {
  const JobValidation& validation = job.validation;
  std::vector<EvaluationData> all;
  if (!validation.files.empty())
    all.push_back({kValidation, "validation.files",
                   job.data.form().source(job, validation.files, validation.where)});
  if (!validation.split_by.empty()) {
    Conditions where = job.data.where;
    where.insert(where.end(), validation.where.begin(), validation.where.end());
    all.push_back(
        {kValidation, "data.train",
         part_of(job, job.data.form().source(job, job.data.train, where), Part::kHeldBack)});
  }
  if (!job.data.test.empty())
    all.push_back(
        {"test", "data.test", job.data.form().source(job, job.data.test, job.data.test_where)});
  return all;
}

Dataset data_to_predict(const Job& job) {
  Job own = job;
  JobData& data = own.data;
  std::set<std::string> needless{data.label(), data.weight, data.identity()};
  for_each_named_column(
      job.features, [&](const std::string&, const std::string& column) { needless.erase(column); });
  data.schema = data.form().to_predict(needless);
  data.truth = {};
  data.group.clear();
  data.candidate.clear();
  return data.form().source(own, {job.data.train.front()}, {});
}

// A label that is text has no value until the job says which texts count as 1.
void verify_label(const Job& job) {
  const JobData& data = job.data;
  if (job.model.objective == "retrieval") return;  // it has none
  const std::string key = str("data.", data.format, ".label");
  if (data.label().empty())
    throw InvalidArgumentError(str(key, " names no column: a job needs one to predict"));
  data.form().verify_label(job, key);
}

}  // namespace cairn::tools
