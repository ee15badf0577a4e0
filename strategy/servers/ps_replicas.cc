#include "strategy/servers/ps_replicas.h"

#include "core/base/error.h"

namespace cairn {

void verify_ps_replicas(const std::string& where, std::int64_t replicas, std::int64_t ps) {
  if (replicas < 1 || replicas > kPsReplicasMax)
    throw InvalidArgumentError(str(where, " is ", replicas, ": a whole number from 1 to ",
                                   kPsReplicasMax, " is wanted, and 1 makes no copies"));
  if (replicas <= ps) return;
  throw InvalidArgumentError(str(where, " is ", replicas, ", and the cluster has ", ps,
                                 " ps: each replica of a shard lies on another ps, so start ",
                                 replicas, " of them, or make it ", ps));
}

}  // namespace cairn
