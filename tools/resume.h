// Going on from a checkpoint of `cairn train`: whose it is, and what was fitted to the data that
// its model was trained on.
//   Thread  any that may touch files.
#pragma once
#include <string>

#include "core/base/json.h"
#include "data/fit.h"
#include "tools/job.h"
#include "tools/job_model.h"

namespace cairn::tools {

// What a checkpoint says of the job that it is of; a checkpoint of another program says nothing.
//   Errors  NotFound, DataLoss: as storage's read_manifest().
Json saved_metadata(const std::string& checkpoint);

// What a job saves with each checkpoint. A feature's ids mean what they meant when the model was
// trained: the vocabularies are kept, and the means and deviations.
Json metadata_of(const Job& job, const FittedFeatures& features, std::int64_t steps);

// FailedPrecondition, which names both: the checkpoint is of another job.
void verify_job(const Json& metadata, const Job& job, const std::string& checkpoint);

// The features of the job over new data, as they were fitted when the checkpoint's model was
// trained.
//   Errors  FailedPrecondition: a feature was not fitted then. The data's own.
FittedFeatures features_as_saved(const Json& metadata, const Job& job,
                                 const std::string& checkpoint);

}  // namespace cairn::tools
