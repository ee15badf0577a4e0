// Going on from a checkpoint of `cairn train`: to which job it belongs, and what was fitted to the
// data that its model was trained on.
//   Thread  any that may touch files.
#pragma once
#include <string>

#include "core/base/json.h"
#include "data/fit.h"
#include "tools/job.h"
#include "tools/job_model.h"

namespace cairn::tools {

// What a checkpoint says about its job; a checkpoint of another program says nothing.
//   Errors  NotFound, DataLoss: as storage's read_manifest().
Json saved_metadata(const std::string& checkpoint);

// What a job saves with each checkpoint. A feature's ids mean what they meant when the model was
// trained: the vocabularies are kept, and the means and deviations. The first batch of its data was
// that of step `data_began`.
Json metadata_of(const Job& job, const FittedFeatures& features, std::int64_t steps,
                 std::int64_t data_began);

//   Errors  FailedPrecondition, which names both jobs: the checkpoint is of another one.
void verify_job(const Json& metadata, const Job& job, const std::string& checkpoint);

// The features of the job over new data, as they were fitted when the checkpoint's model was
// trained.
//   Errors  FailedPrecondition: a feature was not fitted then. The data's own.
FittedFeatures features_as_saved(const Json& metadata, const Job& job,
                                 const std::string& checkpoint);

}  // namespace cairn::tools
