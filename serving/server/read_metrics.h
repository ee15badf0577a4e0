// The metrics of reads of rows: unknown ids, the caches for rows that are read from disk, damaged
// blocks, the memory limit, and how far the rows of a run are that is followed.
//   Thread  any.
#pragma once
#include <vector>

#include "serving/server/metrics.h"
#include "serving/server/model_directory.h"

namespace cairn::serving {

void add_read_metrics(const ModelDirectory& models, std::vector<Measured>& now);

}  // namespace cairn::serving
