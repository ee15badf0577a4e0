// The limits of each number and name of a job, whether the job file or a flag gave it.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tools/job/spec/job.h"

namespace cairn::tools {

// Where a key was given, for messages: "adult.toml:7: data.epochs", or "--epochs".
using PlaceOf = std::function<std::string(const std::string& key)>;

// The keys of [data], [features], [strategy] and [cluster] that were given, whatever their values.
using GivenKeys = std::set<std::string>;

// The names that model.kind may have.
const std::vector<std::string>& model_kinds();

// Verifies the job as a whole.
//   Errors  InvalidArgument: the place, the value and what is wanted; for a name the nearest known
//           one; a label that is a feature as well; a table that the job's data format does not
//           read; a `given` key that its strategy does not read (job_strategy.h).
void verify_job(const Job& job, const PlaceOf& place, const GivenKeys& given = {});

}  // namespace cairn::tools
