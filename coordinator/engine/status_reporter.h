// StatusReporter: the engine's reports for people: the status as JSON, the missing tasks, closures
// that make no progress, and what everything waits for.
//
// The loop makes a snapshot five times a second, so that a thread that asks neither waits for the
// loop nor holds it up. Each task is asked for its own figures once a second; nothing that a task
// says of itself is taken on trust.
//   status_reporter.cc   the snapshot
//   closure_progress.cc  which closures make no progress, and what they wait for
//   Thread  the engine's, but for stats(), json(), set_program() and missing(), which any may call.
//   Writes  ClusterMember::status; of everything else it only reads.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "coordinator/checkpoint/auto_saver.h"
#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/engine_options.h"
#include "coordinator/cluster/session.h"
#include "coordinator/dispatch/dispatch_gate.h"
#include "coordinator/dispatch/table_lock.h"
#include "coordinator/engine/stuck_watch.h"
#include "core/base/json.h"
#include "rpc/loop/task.h"

namespace cairn {

struct ReportedClosure;

class StatusReporter {
 public:
  StatusReporter(Session& session, const ClusterMembers& members, const DispatchGate& gate,
                 const TableLock& tables, const CheckpointSaver& checkpoints)
      : session_(session),
        members_(members),
        gate_(gate),
        tables_(tables),
        checkpoints_(checkpoints),
        stuck_watch_(session.options.waits.stuck_after) {}

  // ---- any thread ----
  EngineStats stats() const;
  std::string json() const;  // the last snapshot
  // Sets the program's own part of the status, from the next snapshot on.
  void set_program(Json said);
  // Tasks that the start waits for, as of the last snapshot.
  std::vector<MissingTask> missing() const;

  // Keeps the snapshot fresh for as long as the engine lives.
  rpc::Task<void> run();
  void refresh();
  void log_waits();  // logs what the engine waits for

 private:
  Json make_status() const;
  std::string queued_for(const Closure& closure) const;
  std::string waits_for(const ReportedClosure& closure) const;
  void see_lane(const LaneState& lane, const std::vector<ReportedClosure>& reported,
                std::vector<ClosureProgress>& out) const;
  std::vector<ClosureProgress> see_closures();
  void look_for_stuck();

  Session& session_;
  const ClusterMembers& members_;
  const DispatchGate& gate_;
  const TableLock& tables_;
  const CheckpointSaver& checkpoints_;
  StuckWatch stuck_watch_;
  std::vector<StuckClosure> stuck_;
  mutable std::mutex mutex_;  // guards the three below
  std::string json_;
  Json program_;  // null: it says nothing
  std::vector<MissingTask> missing_;
};

}  // namespace cairn
