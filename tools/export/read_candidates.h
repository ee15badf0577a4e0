// The candidates of a retrieval model for a server, each version of which computes their vectors.
#pragma once
#include <string>

#include "model/saved/saved_model.h"
#include "serving/server/candidate_data.h"

namespace cairn::tools {

// A file whose name ends in .npz has these arrays:
//   "ids", int64 [n]; or, of texts, "text" and "text_ends", as export_candidates() writes them
//   "vectors", float32 [n, d], and "step", int64 [1], which export_candidates() writes;
//   or, under their own names, the columns that the model's output "candidate" is computed from
//   "query/NAME": such columns of a sample of queries; they may be missing
// Any other file is one of a model of `cairn train`, in the form of its training data: each
// candidate has the columns of its first row, and the queries in the rows are the sample.
//   Cost    the file is read once; the columns of all candidates are in memory.
//   Errors  NotFound: there is no file. FailedPrecondition: the file has rows, and the model is no
//           retrieval model of `cairn train`. InvalidArgument, DataLoss: an npz without the arrays
//           above, or a damaged one. Those of reading rows.
//   Thread  any that may block on files.
serving::CandidateData read_candidates(const SavedModel& about, const std::string& file);

}  // namespace cairn::tools
