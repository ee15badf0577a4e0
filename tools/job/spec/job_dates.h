// [features.dates] of a job file: what models read of columns of dates.
#pragma once
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_limits.h"

namespace cairn::tools {

class TomlTable;

// day = ["day_of_week", "age"], or {parts = [...], reference = 2024-03-01}.
//   Errors  InvalidArgument: file, line and what is wrong.
void read_dates(TomlTable dates, JobFeatures& features);

// Refuses columns that hold no dates, and dates as ids.
//   Errors  InvalidArgument: place, what is wrong and what to do.
void verify_dates(const Job& job, const PlaceOf& place);

}  // namespace cairn::tools
