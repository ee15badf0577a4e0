// The conditions of a job on the rows that it reads: data.where, data.test_where and
// validation.where (data/feature/row_condition.h has their form).
#pragma once
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/feature/row_condition.h"
#include "tools/job/spec/job_limits.h"

namespace cairn::tools {

//   Errors  InvalidArgument: the place, the condition and what is wrong with it; data whose rows
//           cannot be asked.
void verify_conditions(const Job& job, const PlaceOf& place);

// The examples of records or tfrecords that fulfil every condition. Those of csv are left out by
// their source.
//   Cost  a call of a traced function per example.
Dataset filtered(const Dataset& data, const std::vector<std::string>& where);

}  // namespace cairn::tools
