// The metrics that a job's early stopping and its learning rates go by.
#pragma once
#include <optional>
#include <string>

#include "core/base/json.h"
#include "model/monitor.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_metrics.h"

namespace cairn::tools {

// The metric that a job's `monitor` names; where that is empty, the first of the evaluations'.
std::string watched_metric(const Job& job, const std::string& monitor);
// Its value in an evaluation's results.
double value_of(const MetricResults& results, const std::string& metric);

// The monitor of [early_stopping], by evaluations and their steps; empty if the job does not stop
// early. The job must have been verified.
std::optional<Monitor> stopping_monitor(const Job& job);
// The monitor's memory, as a checkpoint keeps it. restore_memory() ignores the memory of another
// metric.
Json memory_json(const Monitor& monitor);
void restore_memory(Monitor& monitor, const Json& saved);

// Reads labels of the data that the model is evaluated on, until there are those without which a
// watched metric is never a number: mostly one batch.
//   Errors  InvalidArgument, with job, key and data: they are all of one class.
void verify_watched_metrics(const Job& job, const FittedFeatures& features);

}  // namespace cairn::tools
