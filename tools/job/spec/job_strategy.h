// [strategy] of a job: which kinds there are, which keys each of them reads, and what is said where
// a job gives a key to a kind that does not read it.
//
//   parameter_server       variables on ps, steps on workers: processes of their own
//   hybrid                 the same with tables on ps, and a copy of all else on each worker
//   mirrored               replicas as threads of one process, a copy of the variables for each
//   multi_worker_mirrored  the same in several processes, with one or several replicas each
//   central_storage        replicas as threads of one process, the variables in one place
//   one_device             one process, one replica
//
//   Errors  InvalidArgument, as job_limits.h has it: the place, the thing and the cure.
//   Thread  any.
#pragma once
#include <string>
#include <vector>

#include "coordinator/cluster/consistency.h"
#include "tools/job/spec/job_limits.h"

namespace cairn::tools {

class TomlTable;

// The names that strategy.kind may have.
const std::vector<std::string>& strategy_kinds();

// Reads the section.
JobStrategy read_strategy(TomlTable table);

// Verifies the strategy, and that it reads each of the `given` keys. Of [strategy] and [cluster] a
// key that the job's kind does not read is an error, because it would have no effect.
void verify_strategy(const Job& job, const GivenKeys& given, const PlaceOf& place);

// How far the workers of a verified parameter_server job may run ahead of one another.
Consistency consistency_of(const JobStrategy& strategy);

// "2 replicas of this process", for people.
std::string strategy_text(const Job& job);

}  // namespace cairn::tools
