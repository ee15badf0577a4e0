// The retrieval part of a job: model.kind = "two_tower", which finds candidates for queries.
#pragma once
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_limits.h"

namespace cairn::tools {

// A job with model.objective = "retrieval" has to say some things, and others must not.
//   Errors  InvalidArgument: place, what is wrong and what to do.
void verify_retrieval(const Job& job, const PlaceOf& place);

}  // namespace cairn::tools
