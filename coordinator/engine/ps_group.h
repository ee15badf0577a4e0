// PsGroup: connects the ps, watches them, and sees to it that their shards are answered for.
//
// A process that is lost takes the primaries with it that it had. Of each of these shards a backup
// that is in sync takes over, in the next epoch and with all rows; without one the shard waits. The
// same process with its state is attached as it is. A new one is sent its tables, the rows of its
// parts from the newest checkpoint, and the fence, and is opened last; until all of that is done,
// however often it is lost meanwhile, it does not serve. What the checkpoint did not have is
// counted (LossLedger).
//   Thread  the engine's.
//   Errors  connect(), attach_in_time(): Unavailable, DeadlineExceeded: try again.
//           FailedPrecondition: something else answers there, or it has another number of shards.
//           DataLoss: the checkpoint is damaged. A ps that is given up fails the queue: after
//           EngineOptions::ps_wait, in which it was away or came and went; at once with recovery
//           off or with a damaged checkpoint.
//   Lock    attaching holds the TableLock.
//   Calls   `pump` (of the scheduler) after each attempt.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/dialer.h"
#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/cluster/session.h"
#include "coordinator/dispatch/announcer.h"
#include "coordinator/dispatch/checkpoint_view.h"
#include "coordinator/dispatch/lane_fence.h"
#include "coordinator/dispatch/shard_tables.h"
#include "coordinator/dispatch/table_lock.h"
#include "coordinator/engine/unrecorded.h"
#include "rpc/loop/task.h"
#include "rpc/server/heartbeat.h"

namespace cairn {

class PsGroup {
 public:
  PsGroup(Session& session, ClusterMembers& members, ShardTables& tables, TableLock& lock,
          const RowSources& sources, LaneFence& fence, Announcer& announcer, LossLedger& losses,
          Recorder& recorder, std::function<void()> pump)
      : session_(session),
        members_(members),
        tables_(tables),
        lock_(lock),
        sources_(sources),
        fence_(fence),
        announcer_(announcer),
        losses_(losses),
        recorder_(recorder),
        unrecorded_(session, members, tables, recorder),
        dialer_(session),
        pump_(std::move(pump)) {}

  // Dials the ps's control and the shards that are placed there, and joins it. Before the shards
  // are placed (ClusterMembers::place_shards) these are its own.
  rpc::Task<void> connect(Ps* ps);
  // Once they are placed: dials those of a connected ps that are still missing.
  rpc::Task<void> connect_places(Ps* ps);
  // Makes the ps's shards part of the session: each with the process that has its rows, or with one
  // that is rebuilt from the newest checkpoint. If a process falls silent meanwhile this ends.
  rpc::Task<void> attach_in_time(Ps* ps);
  // Watches the process of one ps and connects it again, for as long as the engine lives.
  rpc::Task<void> keep(Ps* ps);
  // Has the shards of one ps attached again whenever they are not answered for.
  rpc::Task<void> serve(Ps* ps);
  // The closures that the ps have told of as they were attached.
  Unrecorded& unrecorded() { return unrecorded_; }

 private:
  kj::Promise<rpc::Silence> silence_of(Ps* ps);
  rpc::Task<void> give_up_in_silence(Ps* ps);
  bool choose_primaries(Ps& ps);
  rpc::Task<void> attach(Ps* ps);
  bool lose(Ps& process, const std::string& reason);
  void lose_shards(Ps& ps, const Ps& process, const std::string& reason);
  rpc::Task<void> wait_longer(Ps* ps);
  void give_up(Ps& ps, std::exception_ptr error);
  rpc::Task<void> keep_rebuilt(Ps* ps, std::uint64_t version,
                               std::shared_ptr<const CheckpointView> source);

  Session& session_;
  ClusterMembers& members_;
  ShardTables& tables_;
  TableLock& lock_;
  const RowSources& sources_;
  LaneFence& fence_;
  Announcer& announcer_;
  LossLedger& losses_;
  Recorder& recorder_;
  Unrecorded unrecorded_;
  Dialer dialer_;
  std::function<void()> pump_;
};

}  // namespace cairn
