// The id features that models embed, crosses among them.
#pragma once
#include <vector>

#include "tools/job/parts/fitted_features.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// The id features that have a table of vectors: those of the data, and then the crosses that the
// job wants embedded.
//   Errors  InvalidArgument, with the place: a cross, be it embedded or not, has too many
//           combinations.
std::vector<IdFeature> embedded_ids(const Job& job, const FittedFeatures& features);

}  // namespace cairn::tools
