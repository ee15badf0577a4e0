// Crosses of [features]: which combinations of id features a job may ask for. The wide part has
// every cross of the job (job_model.cc); embedded_ids.h has those that models embed.
#pragma once
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_limits.h"

namespace cairn::tools {

//   Errors  InvalidArgument, with the place: a cross over what is no id feature, or over bags; one
//           that no part of the model reads; two embedded ones of one name.
void verify_crosses(const Job& job, const PlaceOf& place);

}  // namespace cairn::tools
