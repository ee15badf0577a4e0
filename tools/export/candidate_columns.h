// CandidateColumns: the columns of each distinct candidate in rows of a retrieval model's training
// data, and of a sample of these rows.
#pragma once
#include <string>

#include "model/saved/saved_model.h"
#include "serving/server/candidate_data.h"

namespace cairn::tools {

// The rows of a file; as read_candidates() says.
serving::CandidateData candidates_in_rows(const SavedModel& about, const std::string& file);

}  // namespace cairn::tools
