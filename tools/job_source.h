// The datasets that [data] of a job describes, column by column as the files have them.
#pragma once
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tools/job.h"

namespace cairn::tools {

//   Errors  InvalidArgument: columns that do not fit together.
Dataset data_source(const Job& job, const std::vector<std::string>& files);

// Refuses a job without a label, and one whose label is text without a value.
void verify_label(const Job& job);

}  // namespace cairn::tools
