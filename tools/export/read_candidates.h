// The candidates of a retrieval model for an index that a server keeps.
#pragma once
#include <string>

#include "serving/retrieval/candidate_index.h"
#include "tools/export/candidate_rows.h"

namespace cairn::tools {

// Candidates from files in the form of the training data, each with the vector that its first row
// has; with a sample of the queries in these rows. Or, if there is one file whose name ends in
// .npz, those that export_candidates() wrote to it, without a sample.
//   Cost    the files are read twice, the npz once; names and vectors of all candidates in memory.
//   Errors  those of CandidateRows; of an npz InvalidArgument or DataLoss: it has not the arrays
//           that export_candidates() writes. Vectors of another width than the model's queries are
//           found by the server.
//   Thread  any that may block on files.
serving::CandidateSet read_candidates(const CandidateFiles& files);

}  // namespace cairn::tools
