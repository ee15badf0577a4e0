// Crosses of [features]: which combinations of id features a job may ask for, and those that models
// embed. The wide part has every cross of the job (job_model.cc).
#pragma once
#include <vector>

#include "tools/fitted_features.h"
#include "tools/job.h"
#include "tools/job_limits.h"

namespace cairn::tools {

//   Errors  InvalidArgument, with the place: a cross over what is no id feature, or over bags; one
//           that no part of the model reads; two embedded ones of one name.
void verify_crosses(const Job& job, const PlaceOf& place);

// The id features that have a table of vectors: those of the data, and then the crosses that the
// job wants embedded.
//   Errors  InvalidArgument, with the place: a cross, be it embedded or not, has too many
//           combinations.
std::vector<IdFeature> embedded_ids(const Job& job, const FittedFeatures& features);

}  // namespace cairn::tools
