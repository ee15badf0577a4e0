// Workers: connects the workers and their lanes, watches them, and puts back what a lost one had.
//
// A connection is a life of its own: every lane gets a new incarnation, and nothing that an earlier
// one brought to the worker is relied upon. When a worker is lost, its lanes are fenced on every
// shard before any of its closures is queued again, so that no push of theirs lands twice.
//   Thread  the engine's.
//   Errors  connect(), configure(): Unavailable, DeadlineExceeded: try again. FailedPrecondition:
//           something else answers there, or another coordinator has the worker.
//           watch_for_none() fails the queue with Unavailable when every worker has been away, or
//           has come and gone without an answer, for EngineOptions::worker_wait.
//   Calls   ClosureScheduler for what concerns lanes and closures; LaneFence.
#pragma once
#include <optional>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/dialer.h"
#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/cluster/session.h"
#include "coordinator/dispatch/closure_scheduler.h"
#include "coordinator/dispatch/consistency_policy.h"
#include "coordinator/dispatch/lane_fence.h"
#include "rpc/loop/task.h"

namespace cairn {

class Workers {
 public:
  Workers(Session& session, ClusterMembers& members, ClosureScheduler& scheduler,
          const ConsistencyPolicy& policy, LaneFence& fence, LossLedger& losses)
      : session_(session),
        members_(members),
        scheduler_(scheduler),
        policy_(policy),
        fence_(fence),
        losses_(losses),
        dialer_(session) {}

  // Dials the worker's control and lanes, and joins it.
  rpc::Task<void> connect(Worker* worker);
  // Makes a connected worker part of the session: from then on closures are sent to it.
  rpc::Task<void> configure(Worker* worker);
  // Watches one worker and brings it back, for as long as the engine lives.
  rpc::Task<void> keep(Worker* worker);
  rpc::Task<void> watch_for_none();

 private:
  rpc::Task<void> watch(Worker* worker);
  rpc::Task<void> give_up(Worker* worker);
  static std::optional<TimePoint> useless_since(const Worker& worker);

  Session& session_;
  ClusterMembers& members_;
  ClosureScheduler& scheduler_;
  const ConsistencyPolicy& policy_;
  LaneFence& fence_;
  LossLedger& losses_;
  Dialer dialer_;
};

}  // namespace cairn
