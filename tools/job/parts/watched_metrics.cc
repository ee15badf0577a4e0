#include "tools/job/parts/watched_metrics.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/graph/array.h"
#include "data/dataset/dataset_iterator.h"
#include "model/seen_labels.h"
#include "model/writers/json_number.h"
#include "nn/metrics/metrics.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/spec/job_objective.h"

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

std::string watched_metric(const Job& job, const std::string& monitor) {
  return monitor.empty() ? eval_metrics(job).front() : monitor;
}

double value_of(const MetricResults& results, const std::string& metric) {
  const auto found = std::ranges::find(results, metric, &MetricResults::value_type::first);
  CAIRN_CHECK(found != results.end(), "no metric ", metric);
  return found->second;
}

std::optional<Monitor> stopping_monitor(const Job& job) {
  const JobEarlyStopping& stopping = job.early_stopping;
  if (!stopping.given) return std::nullopt;
  Monitor monitor(watched_metric(job, stopping.monitor), MonitorMode::kAuto, stopping.min_delta,
                  {.values = stopping.patience});
  monitor.begin(direction_of(job, monitor.name()), "early_stopping");
  return monitor;
}

Json memory_json(const Monitor& monitor) {
  const Monitor::Memory& memory = monitor.memory();
  return {{"monitor", monitor.name()},
          {"best", number_json(memory.best)},
          {"best_step", memory.best_at},
          {"judged_step", memory.last_at},
          {"in_vain", memory.in_vain}};
}

void restore_memory(Monitor& monitor, const Json& saved) {
  if (saved.value("monitor", "") != monitor.name()) return;
  monitor.go_on({.best = cairn::number_of(saved.at("best")),
                 .best_at = saved.at("best_step").get<std::int64_t>(),
                 .last_at = saved.at("judged_step").get<std::int64_t>(),
                 .in_vain = saved.at("in_vain").get<std::int64_t>()});
}

void verify_watched_metrics(const Job& job, const FittedFeatures& features) {
  std::vector<std::pair<std::string, std::string>> watched;  // keys, and the monitors they name
  if (job.early_stopping.given) watched.emplace_back("early_stopping", job.early_stopping.monitor);
  if (job.callbacks.plateau.given)
    watched.emplace_back("callbacks.reduce_lr_on_plateau", job.callbacks.plateau.monitor);
  for (const auto& [key, monitor] : watched) {
    const std::string metric = watched_metric(job, monitor);
    const nn::NeededLabels needed = needed_labels(job, metric);
    if (needed == nn::NeededLabels::kAny) continue;
    const std::vector<EvaluationData> sources = eval_sources(job, features);
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
