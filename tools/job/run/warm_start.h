// A warm start: a new run that begins with rows of a checkpoint, which may be of another job
// ([warm_start]). Each row of a vocabulary's feature follows its value: into whichever row the
// value has now. Rows of new values begin at their initial values, and numbers are standardised as
// they were when the checkpoint's model was trained.
//   Thread  any that may touch files.
#pragma once
#include <string>

#include "coordinator/restore/restore_options.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/run/run_output.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// The job's features, fitted to its own data, but for the means and deviations that the
// checkpoint's model was trained with. Warns if its label was another one.
//   Errors  FailedPrecondition: a feature has the name and the rows of one of the checkpoint's, and
//           is another one. NotFound, DataLoss: as storage's read_manifest().
FittedFeatures features_for_warm_start(const Job& job, const FittedFeatures& fitted,
                                       const std::string& checkpoint, RunOutput& output);

// The restore that [warm_start] asks for, of this checkpoint.
//   Errors  InvalidArgument: as RestorePlan. FailedPrecondition, listing all: tables whose rows
//           would stand for other values. NotFound, DataLoss: as storage's read_manifest().
RestoreOptions warm_start_options(const Job& job, const FittedFeatures& features,
                                  const std::string& checkpoint);

}  // namespace cairn::tools
