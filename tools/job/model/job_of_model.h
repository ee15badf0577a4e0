// The job that trained a saved model, over other files: how these are read, what a label or a
// candidate is, and which metrics evaluate the model.
//   Thread  one, as a job's.
#pragma once
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "model/saved/saved_model.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// The files are the job's test data; "skip_bad_rows" holds as in [data].
//   Errors  FailedPrecondition: the model is not of `cairn train`. Those of parse_job().
Job job_of_model(const SavedModel& model, const std::vector<std::string>& paths,
                 bool skip_bad_rows);

// The job's test data as its files have it, and with the model's features; label, weights and
// groups stay the job's.
Dataset raw_examples(const Job& job);
Dataset labelled_examples(const Job& job, const SavedModel& model);

}  // namespace cairn::tools
