// DispatchGate: may this closure be sent now? If not, why?
//
// A closure waits here for what concerns the whole cluster: that the shards have its tables and
// know its number, that every ps is there, that nobody is making or restoring tables, and that it
// makes no update staler than the run allows, or belongs to the open round. Whether a lane has room
// for it is the dispatcher's matter.
//   Thread  the engine's.
//   Cost    open_for(): a few comparisons; asked once or twice for each closure that is sent.
#pragma once
#include <string>

#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/cluster_members.h"
#include "coordinator/dispatch/announcer.h"
#include "coordinator/dispatch/rounds.h"
#include "coordinator/dispatch/shard_tables.h"
#include "coordinator/dispatch/staleness_bound.h"
#include "coordinator/dispatch/table_lock.h"

namespace cairn {

class DispatchGate {
 public:
  DispatchGate(const ClusterMembers& members, ShardTables& tables, const TableLock& lock,
               Announcer& announcer, Consistency consistency = {})
      : members_(members),
        tables_(tables),
        lock_(lock),
        announcer_(announcer),
        bound_(consistency, members),
        rounds_(consistency, members) {}

  // `next` is at the head of the queue. If it may not be sent, whatever removes the obstacle pumps
  // the dispatcher again: a layout that it needs is begun to be synced here, its number is
  // announced soon, a ps that is away is brought back by PsGroup, and a closure that ends (the
  // dispatcher says so to bound()) makes room for the next.
  bool open_for(const Closure& next) {
    if (!tables_.have(next.oldest_layout)) {
      tables_.sync();
      return false;
    }
    announcer_.want(next.sequence);
    return !next.function->uses_variables ||
           (members_.all_ps_ready() && !lock_.held() && announcer_.announced(next.sequence) &&
            bound_.admits(next) && rounds_.admits(next));
  }
  StalenessBound& bound() { return bound_; }
  Rounds& rounds() { return rounds_; }
  const Rounds& rounds() const { return rounds_; }
  // All ps are there, and nobody makes or restores tables.
  bool ps_serve() const { return members_.all_ps_ready() && !lock_.held(); }
  // For people. Empty: it waits for nothing here.
  std::string obstacle(const Closure& closure) const;
  // The same, of the bound on staleness or the open round alone: for whom it holds the closure
  // back.
  std::string bound_obstacle(const Closure& closure) const;

 private:
  const ClusterMembers& members_;
  ShardTables& tables_;
  const TableLock& lock_;
  Announcer& announcer_;
  StalenessBound bound_;
  Rounds rounds_;
};

}  // namespace cairn
