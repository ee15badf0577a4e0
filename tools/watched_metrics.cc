#include "tools/watched_metrics.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/graph/array.h"
#include "data/dataset_iterator.h"
#include "model/seen_labels.h"
#include "nn/metrics/metrics.h"
#include "tools/fitted_features.h"
#include "tools/job_metrics.h"
#include "tools/job_objective.h"

namespace cairn::tools {
namespace {

SeenLabels labels_of(const Job& job, const Dataset& examples, nn::NeededLabels needed) {
  const Objective objective(job);
  const auto iterator = open(examples.batch(job.evaluation.batch));
  const std::size_t column = iterator->element_spec().find(iterator->element_spec().label);
  SeenLabels seen;
  while (!seen.have(needed)) {
    const auto batch = iterator->next();
    if (!batch) break;
    seen.add(objective.truth(Array((*batch)[column])).eval());
  }
  return seen;
}

}  // namespace

void verify_watched_metrics(const Job& job, const FittedFeatures& features) {
  std::vector<std::pair<std::string, std::string>> watched;  // keys, and the metrics they name
  if (job.early_stopping.given) watched.emplace_back("early_stopping", job.early_stopping.monitor);
  if (job.callbacks.plateau.given)
    watched.emplace_back("callbacks.reduce_lr_on_plateau", job.callbacks.plateau.monitor);
  for (auto& [key, metric] : watched) {
    if (metric.empty()) metric = judged_metrics(job).front();
    const nn::NeededLabels needed = needed_labels(job, metric);
    if (needed == nn::NeededLabels::kAny) continue;
    const std::vector<JudgedData> sources = judged_sources(job, features);
    if (sources.empty()) continue;
    const SeenLabels seen = labels_of(job, sources.front().data, needed);
    if (!seen.have(needed))
      throw InvalidArgumentError(str(
          job.name, ": ", key, " watches ", metric, ", which can never be a number: in the ",
          sources.front().name, " data, of ", sources.front().key, ", ", seen.text(),
          "; name another metric by ", key, ".monitor, or data of both classes in [validation]"));
  }
}

}  // namespace cairn::tools
