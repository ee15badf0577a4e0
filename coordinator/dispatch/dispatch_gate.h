// DispatchGate: may this closure be sent now? If not, why?
//
// A closure waits here for what concerns the whole cluster: that the shards have its tables and
// know its number, that every ps is there, that no tables are being made or restored, and that the
// run's consistency lets it start. Whether a lane has room for it is the scheduler's matter.
//   Thread  the engine's.
//   Cost    open_for(): a few comparisons; asked once or twice for each closure that is sent.
#pragma once
#include <string>

#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/cluster_members.h"
#include "coordinator/dispatch/announcer.h"
#include "coordinator/dispatch/consistency_policy.h"
#include "coordinator/dispatch/shard_tables.h"
#include "coordinator/dispatch/table_lock.h"

namespace cairn {

class DispatchGate {
 public:
  DispatchGate(const ClusterMembers& members, ShardTables& tables, const TableLock& lock,
               Announcer& announcer, const ConsistencyPolicy& policy)
      : members_(members), tables_(tables), lock_(lock), announcer_(announcer), policy_(policy) {}

  // `next` is at the head of the queue. If it may not be sent, whatever removes the obstacle pumps
  // the scheduler again: a layout that it needs is begun to be synced here, its number is
  // announced soon, a ps that is away is brought back by PsGroup, and a closure that ends (the
  // scheduler says so to the policy) makes room for the next.
  bool open_for(const Closure& next) {
    if (!tables_.have(next.oldest_layout)) {
      tables_.sync();
      return false;
    }
    announcer_.want(next.sequence);
    return !next.function->uses_variables ||
           (members_.all_ps_ready() && !lock_.held() && announcer_.announced(next.sequence) &&
            policy_.may_start(next));
  }
  // For people. Empty: it waits for nothing here.
  std::string obstacle(const Closure& closure) const;
  const ConsistencyPolicy& policy() const { return policy_; }

 private:
  const ClusterMembers& members_;
  ShardTables& tables_;
  const TableLock& lock_;
  Announcer& announcer_;
  const ConsistencyPolicy& policy_;
};

}  // namespace cairn
