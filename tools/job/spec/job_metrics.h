// The metrics that a job may name under evaluation.metrics, by its objective.
//   Thread  any; metrics are of one.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/metrics/metrics.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// The input of a metric: summaries of batches of examples, or whole lists of them. A list is the
// rows with one value of data.group, or in a retrieval all candidates.
enum class MetricOf : std::uint8_t { kExamples, kLists };

// The metrics of an objective where a job names none, the most telling one first; and all that a
// job may name. Names with "@" are examples of theirs: any other threshold or number will do.
std::vector<std::string> metrics_of(const std::string& objective);
std::vector<std::string> known_metrics(const std::string& objective);
bool is_known_metric(const std::string& objective, const std::string& metric);
// Returns what a metric is computed of. Needs  is_known_metric().
MetricOf metric_of(const std::string& objective, const std::string& metric);

// Those that the job's evaluations tell, in their order.
std::vector<std::string> eval_metrics(const Job& job);
// The first of them that is computed of lists; empty: none is.
std::string metric_of_lists(const Job& job);
// New ones: those of eval_metrics() that are computed so, in their order. Metrics of lists are
// those of nn/metrics/ranking_metrics.h.
std::vector<std::unique_ptr<nn::Metric>> make_metrics(const Job& job, MetricOf of);
// Results of both kinds, in the order of eval_metrics().
using MetricResults = std::vector<std::pair<std::string, double>>;
MetricResults in_order(const Job& job, MetricResults some, const MetricResults& others);

// The properties of a metric of the job (nn/metrics/metrics.h).
nn::Direction direction_of(const Job& job, const std::string& metric);
nn::NeededLabels needed_labels(const Job& job, const std::string& metric);

}  // namespace cairn::tools
