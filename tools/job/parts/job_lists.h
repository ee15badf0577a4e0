// The lists of a job with model.objective = "ranking", which are examples with one value of the
// column data.group, one after another in the data; and the candidates of one with "retrieval".
//   Thread  one.
#pragma once
#include <string>

#include "data/dataset/dataset.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/parts/ranked_lists.h"
#include "tools/job/parts/retrieval.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// The lists of examples with the job's features, which `key` of the job names. Reads all of them.
//   Errors  InvalidArgument: RankedLists'. The data's own.
RankedLists read_lists(const Job& job, const FittedFeatures& features, const Dataset& examples,
                       const std::string& key);

// The candidates of a retrieval's examples with the job's features. Reads all of them.
Retrieval read_candidates(const FittedFeatures& features, const Dataset& examples);

// Reads the training data once more, as training will. Nothing for other objectives.
//   Errors  InvalidArgument: the examples of a list do not lie one after another; a label below 0;
//           no list has examples of different labels, so that there is no order to learn.
void verify_training_lists(const Job& job, const FittedFeatures& features);

}  // namespace cairn::tools
