// ClosureScheduler: queue -> lane -> result. It chooses a lane for each closure, gives the closure
// its step and its elements, and settles what became of it: committed, run again, or failed. What a
// run's Consistency decides about that, ConsistencyPolicy does.
//
// Exactly once, on this side:
//   - A closure's step and elements are fixed when it is first sent, and kept for as often as it is
//     sent again.
//   - A closure that may have pushed to some shards only is torn from the moment at which its
//     failure is known until it is settled. No cut is made meanwhile.
//   - What was sent to a lost lane is handed out by abandon(), and queued again only after the
//     lane's fence is raised (Workers).
//   - A closure is answered when it ends, whatever else its message brought.
//   - If a pipeline ends, its lane helps with the others of the dataset. The program gets the end
//     only when all their elements are committed, for that error cancels all that is queued.
// Order: of the lanes with the fewest closures the one that has waited longest is next. Closures
// that go to a lane in one turn of the loop go in one message, or in a few.
//   Thread  the engine's, but for wake().
//   Errors  those of closures go to the queue, which raises them; none are thrown here.
//   Cost    what a closure costs does not depend on how many workers there are.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/session.h"
#include "coordinator/dispatch/announcer.h"
#include "coordinator/dispatch/consistency_policy.h"
#include "coordinator/dispatch/dispatch_gate.h"
#include "coordinator/dispatch/least_loaded.h"
#include "coordinator/dispatch/outcomes.h"
#include "coordinator/dispatch/shard_tables.h"
#include "coordinator/journal/recorder.h"
#include "coordinator/progress/progress_book.h"
#include "rpc/loop/task.h"

namespace cairn {

class ClosureScheduler {
 public:
  // All outlive the scheduler. Lanes are sent the synced layout of `tables`.
  ClosureScheduler(Session& session, ClusterMembers& members, ShardTables& tables,
                   DispatchGate& gate, ConsistencyPolicy& policy, Announcer& announcer,
                   ProgressBook& progress, Outcomes& outcomes, Recorder& recorder);

  // Has the loop pump soon; any thread.
  void wake();
  // Sends all that can be sent. Called whenever an obstacle may be gone; nothing happens before the
  // session has started.
  void pump();

  // ---- lanes; called by Workers ----
  // The lane has a new connection, of which nothing is known. It is sent nothing yet.
  void renew(LaneState& lane);
  // The lane may be sent closures, if it is ready. One that comes while pushes are held is kept out
  // until they are released: it has not been asked to hold its own.
  void admit(LaneState& lane);
  // The lane is lost: its connection and tasks go. What it had been sent is appended to
  // `interrupted`; some of that may be torn from now on.
  void abandon(LaneState& lane, std::vector<std::shared_ptr<Closure>>& interrupted);

  // ---- for a cut; called by CutMaker ----
  // Are there closures that some shards may have and others not?
  bool any_torn() const { return outcomes_.any_torn(); }
  // A cut waits for them, from now on or no more. A round that one of them belongs to waits for no
  // further members then: the program may be waiting for the checkpoint, and schedule none.
  void cut_waits(bool waits);
  // Ends when no push is under way on any lane, and what became of the closures that have ended is
  // known here. Errors: a lane was lost, or did not answer in time; release_pushes() all the same.
  rpc::Task<void> hold_pushes();
  void release_pushes();
  // Is every update of `applied` committed? One that some shard has applied, and whose end is not
  // known here, may be half done.
  bool all_committed(const AppliedClosures& applied) const;

 private:
  void dispatch_queued();
  bool may_be_sent(std::shared_ptr<const Closure>& next);
  LaneState* least_loaded();
  std::shared_ptr<const Closure> next_queued();
  void dispatch_next(LaneState& lane, const Closure& next);
  void weigh(LaneState& lane);
  bool prepared(const LaneState& lane, const Closure& closure) const;
  rpc::Task<void> prepare(LaneState* lane, std::shared_ptr<Closure> closure);
  rpc::Task<void> send_preparations(LaneState* lane, std::shared_ptr<Closure> closure);
  void dispatch(LaneState& lane, std::shared_ptr<Closure> closure);
  void owe(LaneState& lane);
  void send_dispatched();
  LaneMessage next_message(LaneState& lane);
  void add_takes(LaneMessage& message) const;

  rpc::Task<void> run_on(LaneState* lane, LaneMessage message);
  rpc::Task<bool> recorded();  // false: they are not, and all has failed
  void answered(LaneState& lane, LaneReply reply);
  void answered_late(LaneState& lane, const LaneReply& reply);
  void succeeded(LaneState& lane, const std::shared_ptr<Closure>& closure, LaneReply& reply);
  void went_wrong(LaneState& lane, const std::shared_ptr<Closure>& closure,
                  std::exception_ptr error);
  void data_ended(std::shared_ptr<Closure> closure, const ErrorParts& end);
  void fail(Closure& closure, std::exception_ptr error);
  std::exception_ptr input_error(const ErrorParts& parts, const LaneState& lane) const;
  void torn(Closure& closure);

  void spread_layout();
  rpc::Task<void> send_layout(LaneState* lane, std::shared_ptr<const Layout> layout);
  rpc::Task<void> hold_lane(LaneState* lane);

  Session& session_;
  ClusterMembers& members_;
  ShardTables& tables_;
  DispatchGate& gate_;
  ConsistencyPolicy& policy_;
  Announcer& announcer_;
  ProgressBook& progress_;
  Outcomes& outcomes_;
  Recorder& recorder_;
  ClosureQueue& queue_;  // the session's, and its clock: looked at for each closure
  const Clock& clock_;
  std::shared_ptr<rpc::Mailbox> mailbox_;
  // Posted work looks whether this is still there: the loop may outlive the engine.
  std::shared_ptr<std::atomic<bool>> wake_posted_ = std::make_shared<std::atomic<bool>>(false);
  LeastLoaded free_;             // lanes that may be sent a closure, by their number
  std::vector<LaneState*> due_;  // lanes that something is to be sent to at the end of pump()
};

}  // namespace cairn
