// How many replicas of its rows a cluster of parameter servers may have: ParameterServerOptions,
// and [cluster] of a job.
#pragma once
#include <cstdint>
#include <string>

namespace cairn {

// Each replica applies every push, so that more of them cost more than they save.
inline constexpr std::int64_t kPsReplicasMax = 8;

// Verifies that each shard can have so many replicas, each on another one of `ps` parameter
// servers. `where`: what the number was given as, for the message.
//   Errors  InvalidArgument: it is not from 1 to kPsReplicasMax, or above `ps`; names both numbers.
void verify_ps_replicas(const std::string& where, std::int64_t replicas, std::int64_t ps);

}  // namespace cairn
