// The metrics that a job's early stopping and its learning rates go by.
#pragma once
#include "tools/job.h"
#include "tools/job_model.h"

namespace cairn::tools {

// Reads labels of the data that the model is judged on, until there are those without which a
// watched metric is never a number: mostly one batch.
//   Errors  InvalidArgument, with job, key and data: they are all of one class.
void verify_watched_metrics(const Job& job, const FittedFeatures& features);

}  // namespace cairn::tools
