// ClusterMembers: the tasks of the cluster and how each stands, as the engine sees them.
//
// Data that several parts read. Each group of fields has one writer, named beside it; the others
// only look. A member is never removed: one that is lost stays, not ready, until it is back.
//   Thread  the engine's.
//   Owners  Engine makes the members at its start, and holds them until it goes.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/cluster/engine_options.h"
#include "coordinator/cluster/flapping.h"
#include "coordinator/cluster/in_flight.h"
#include "coordinator/cluster/lane_client.h"
#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/cluster/send_window.h"
#include "coordinator/cluster/shard_client.h"
#include "coordinator/cluster/task_client.h"
#include "core/base/clock.h"
#include "core/base/incarnation.h"
#include "rpc/loop/task_group.h"

namespace cairn {

struct Worker;

// A thread of a worker, over one connection after the other.
struct LaneState {
  Worker* worker = nullptr;
  std::uint32_t index = 0;  // in its worker
  std::size_t number = 0;   // in the cluster: which pipeline of a dataset is its own

  // Written by Workers, which connects it, and reset by ClosureScheduler::abandon().
  std::unique_ptr<LaneClient> client;
  LaneIncarnation incarnation;  // none: it is lost, whatever it may still send
  bool ready = false;
  std::unique_ptr<rpc::TaskGroup> tasks;

  // Written by ClosureScheduler. What this connection was sent:
  std::uint64_t newest_layout = 0;  // the version of the last one
  std::vector<bool> functions;
  std::unordered_map<std::uint64_t, bool> pipelines;
  std::shared_ptr<Closure> preparing;            // it is being sent what this closure needs
  InFlight inflight;                             // sent, or about to be in this turn of the loop
  std::vector<std::shared_ptr<Closure>> outbox;  // the latter
  // The closures, by sequence, of rounds that were applied without their shares: the lane is still
  // at work on them, and the results that it answers with are of no interest.
  std::set<std::uint64_t> late;
  std::size_t calls = 0;      // that wait there for results
  std::uint64_t answers = 0;  // closures that this connection has answered
  std::uint64_t group = 0;    // the last one that this connection joined (RoundGroup); 0: none
  // It came while pushes were held: it is sent nothing until they are released.
  bool kept_out = false;
  bool due = false;  // something is to be sent to it at the end of this turn
  SendWindow window;

  // It may be sent a closure.
  bool has_room() const {
    return ready && !kept_out && !preparing && inflight.size() < window.size();
  }
};

// A task's process: a ps or a worker, written by PsGroup or Workers but for what is said beside a
// field.
struct ClusterMember {
  std::uint32_t index = 0;
  std::string address;
  std::string name;
  std::unique_ptr<TaskClient> control;
  ProcessIncarnation process;
  ProcessIncarnation served;  // the one that became part of the session last
  TimePoint lost_at{};
  Flapping flapping;
  bool ready = false;
  std::string trouble = "not yet connected";
  std::string status;  // its own JSON, polled by StatusReporter
  TimePoint status_at{};
  LossLedger::Absence absence;  // its last loss, until an update goes through it (ClosureScheduler)
};

struct Worker : ClusterMember {
  std::vector<std::unique_ptr<LaneState>> lanes;
};

struct Ps;

// A place where a copy of a shard's rows may be: an endpoint of a ps. Written by PsGroup.
struct ShardPlace {
  Ps* host = nullptr;
  std::uint32_t endpoint = 0;
  std::unique_ptr<ShardClient> client;  // null: the host is away
  ShardId shard = 0;
  // The shard there is configured as a backup of the present primary, in its epoch (by
  // ReplicaKeeper).
  bool follows = false;
  TimePoint named_at{};  // to the primary, the last time

  // As a layout has it, with the present process of the host.
  ShardReplica replica() const;
};

// A shard, and the places where its rows may be; the first one is on the ps that it is numbered
// under. One of them is the primary's, which answers for the rows.
struct PlacedShard {
  ShardId number = 0;
  std::vector<ShardPlace> places;
  std::size_t primary = 0;  // index into places
  // The primary's process is new to the rows, or a restore (Checkpointer) has not ended: it must be
  // rebuilt before it serves.
  bool needs_rows = false;
  ProcessIncarnation served;  // the primary's, once it has been part of the session

  const ShardPlace& at() const { return places[primary]; }
};

// A ps: its process, and the shards that are numbered under it. With replicas, the primary of such
// a shard may be another ps's process. `ready` means that every one of these shards has a primary
// that answers.
struct Ps : ClusterMember {
  std::vector<PlacedShard> placed;  // complete once the engine started
  // The primaries of all of them, by their number; none while one of the primaries is away.
  std::vector<ShardClient*> shards;
  std::vector<ShardPlace*> hosted;  // the places of all shards that are on this process
  // Backups of its shards that may take over, as was kept last (by ShardTables).
  std::size_t in_sync = 0;
  ShardId first_shard = 0;
  std::uint32_t shard_count = 0;
  bool lost_for_good = false;
  std::uint64_t closures_below = 0;  // announced to all of its shards (by Announcer)
  // It has been attached, and not lost since; `ready` may have gone before the loss is noticed.
  bool in_service = false;
  // How often it became part of the session: a mark is of one of these times.
  std::uint64_t attached = 0;
  // How often that was other than by a backup that took over.
  std::uint64_t rows_may_differ = 0;

  bool needs_rows() const;
  void set_needs_rows(bool needs);
  // Rows that it restores on demand (by ShardTables).
  struct Coming {
    std::string from;          // the checkpoint's folder; empty: all are there
    std::exception_ptr error;  // they do not come
    std::uint64_t number = 0;  // of the restore that left them, or of what made them needless
    void begin(std::string folder) { *this = {std::move(folder), nullptr, number + 1}; }
  };
  Coming coming;
};

struct ClusterMembers {
  std::vector<std::unique_ptr<Ps>> ps;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<LaneState*>
      lanes;                   // of all workers, by their number; complete once the engine started
  std::uint64_t restores = 0;  // how often rows went back to a checkpoint (by Checkpointer)
  // Pushes are held on the lanes for a cut, or about to be (by ClosureScheduler).
  bool pushes_held = false;
  // Lanes wait for answers from where a shard is no more: they are sent the layout as soon as this
  // version is synced (set by PsGroup; ClosureScheduler sends it). 0: there is no hurry.
  std::uint64_t urgent_layout = 0;

  std::vector<ClusterMember*> all() const;  // the ps, then the workers
  bool all_ps_ready() const;
  bool any_ps_given_up() const;
  // The first ps that still has rows to restore, or null.
  const Ps* still_restoring() const;
  // The primaries of the ps that are connected, in the order of the ps. Valid until the next wait.
  std::vector<ShardClient*> all_shards() const;
  // How often each ps became part of the session, by ps.
  std::vector<std::uint64_t> times_attached() const;
  // Numbers the shards of all ps, which are connected, and gives each so many places, on different
  // ps. The layout begins with what this returns.
  //   Errors  FailedPrecondition: with replicas, two ps have different numbers of shards.
  std::vector<ShardLayout> place_shards(std::size_t replicas);
  // Ends the connections to the processes that answer for the ps's shards, so that they are lost,
  // and attached anew.
  void cut_off(Ps& ps);
  // Another number whenever rows may have changed otherwise than by updates.
  std::uint64_t rows_generation() const;
  // Tasks without a connection.
  std::vector<MissingTask> not_connected() const;
};

}  // namespace cairn
