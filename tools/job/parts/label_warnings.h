// Warnings about the labels of the data: training on one class, and metrics that are not numbers.
#pragma once
#include <string>
#include <vector>

#include "tools/job/spec/job.h"

namespace cairn::tools {

// One line for a binary job whose training labels are all on one side, and one for the declared
// classes of a multiclass job that no row has.
//   Cost  reads the training data until every class has been seen.
//   Errors  those of reading it.
std::vector<std::string> label_warnings(const Job& job);

// Why this metric can be no number on the data of that name ("test"); empty: no reason is known.
std::string why_not_a_number(const std::string& metric, const std::string& data);

}  // namespace cairn::tools
