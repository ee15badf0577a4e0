#include "tools/job/parts/label_warnings.h"

#include <set>

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "data/dataset/dataset_iterator.h"
#include "tools/job/parts/job_source.h"
#include "tools/job/spec/job_objective.h"

namespace cairn::tools {
namespace {

std::int64_t class_of(const Job& job, float truth) {
  return job.model.objective == "multiclass" ? static_cast<std::int64_t>(truth) : truth > 0.5f;
}

// Ends with the first batch by which as many classes as there are have been seen.
std::set<std::int64_t> classes_seen(const Job& job, std::int64_t classes) {
  const Objective objective(job);
  const Dataset batches = train_data(job).batch(4096);
  const ElementSpec& spec = batches.element_spec();
  const std::size_t label = spec.find(spec.label);
  std::set<std::int64_t> seen;
  const auto elements = open(batches);
  while (static_cast<std::int64_t>(seen.size()) < classes) {
    const auto batch = elements->next();
    if (!batch) break;
    const Tensor truth = cast(objective.truth(Array((*batch)[label])), DType::kFloat32).eval();
    for (const float one : truth.values<float>()) seen.insert(class_of(job, one));
  }
  return seen;
}

std::string name_of_class(const JobModel& model, std::int64_t each) {
  return model.class_texts.empty() ? std::to_string(each)
                                   : model.class_texts[static_cast<std::size_t>(each)];
}

}  // namespace

std::vector<std::string> label_warnings(const Job& job) {
  const bool binary = job.model.objective == "binary";
  if (!binary && job.model.objective != "multiclass") return {};
  const std::int64_t classes = binary ? 2 : job.model.classes;
  const std::set<std::int64_t> seen = classes_seen(job, classes);
  if (static_cast<std::int64_t>(seen.size()) == classes || seen.empty()) return {};
  const std::string key = job.data.label_key();
  if (binary)
    return {str("warning: every label of data.train (", key, ") is ", *seen.begin(),
                ": the model can learn nothing but that; look at the label's column, its ",
                "`positive` texts or threshold, and at data.where")};
  std::string missing;
  for (std::int64_t i = 0; i < classes; ++i)
    if (!seen.contains(i))
      missing += str(missing.empty() ? "\"" : ", \"", name_of_class(job.model, i), "\"");
  return {str("warning: no row of data.train is of the class ", missing, " (model.classes, ", key,
              "): the model will not predict it")};
}

std::string why_not_a_number(const std::string& metric, const std::string& data) {
  if (metric == "auc" || metric == "pr_auc")
    return str(metric, " is not a number: it compares examples of both classes, and all of the ",
               data, " data are of one");
  if (metric == "threshold")
    return str(metric, " is not a number: no probability is as good on the ", data,
               " data as model.threshold asks for, or all of their labels are of one class");
  const std::string base = metric.substr(0, metric.find('@'));
  if (base == "ndcg" || base == "mrr" || base == "hit_rate")
    return str(metric, " is not a number: no list of the ", data,
               " data has a row whose label is above 0");
  if (metric == "grouped_auc")
    return str(metric, " is not a number: no list of the ", data,
               " data has rows of different labels");
  if (metric == "calibration")
    return str(metric, " is not a number: no label of the ", data, " data is above 0");
  return "";
}

}  // namespace cairn::tools
