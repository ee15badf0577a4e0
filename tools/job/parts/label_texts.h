// Checks labels that a job gives as texts: if no row has such a text, every label becomes the other
// one, and a model of that looks perfect.
//   Thread  any that may touch files.
#pragma once
#include <string>
#include <vector>

#include "tools/job/spec/job.h"

namespace cairn::tools {

// Looks for each text that the job names, positive, negative or a class, among the labels of the
// training data, and then of the data that the model is evaluated on.
//   Errors  InvalidArgument, with the texts that there are: one is in neither; or the training data
//           has none of the positive texts, or none of the negative ones.
//   Cost  reads as far as all texts have been seen, which is mostly not far.
void verify_label_texts(const Job& job);
// If none of these files, which `key` names, has a positive text: a warning with the texts that
// they do have. Empty if one has, or if the job's labels are not texts.
std::string no_positive_warning(const Job& job, const std::vector<std::string>& files,
                                const std::vector<std::string>& where, const std::string& key);
// The same of all data that the job's model is evaluated on.
std::vector<std::string> no_positive_warnings(const Job& job);

}  // namespace cairn::tools
