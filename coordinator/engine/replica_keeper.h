// ReplicaKeeper: sees to it that each shard has its backups, and keeps the layout true to which of
// them are in sync.
//
// A ps that is there and has a place for a shard becomes its backup: it is given the tables of it,
// named to the primary, which copies its rows while training goes on, and enters the layout once
// it has all of them. From then on the primary answers nothing that the backup lacks. A backup that
// is lost or silent holds these answers up until it has left the layout durably and so cannot take
// over any more. The primary then goes on without it, and the backup starts from the beginning.
//   Thread  the engine's.
//   Lock    names no backup while another holds the TableLock, and does not take it.
//   Calls   `pump` once a layout has changed.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/session.h"
#include "coordinator/dispatch/shard_tables.h"
#include "coordinator/dispatch/table_lock.h"
#include "rpc/loop/task.h"

namespace cairn {

class ReplicaKeeper {
 public:
  ReplicaKeeper(Session& session, ClusterMembers& members, ShardTables& tables,
                const TableLock& lock, std::function<void()> pump)
      : session_(session),
        members_(members),
        tables_(tables),
        lock_(lock),
        pump_(std::move(pump)) {}

  // Begins, for all shards, once they are placed. Without replicas there is nothing to do.
  void run();

 private:
  // A primary, for as long as it is one, and its word on its backups.
  struct Primary {
    Ps* ps = nullptr;
    PlacedShard* shard = nullptr;
    ShardClient* client = nullptr;
    std::uint64_t attached = 0;
    BackupNews news = {};
    bool silent = false;
    // Whether it is still the one that answers. To be asked after each wait.
    bool serves() const { return ps->ready && ps->attached == attached && !silent; }
  };

  rpc::Task<void> keep(Ps* ps, std::size_t shard);
  rpc::Task<void> keep_while_it_serves(Ps* ps, std::size_t shard);
  rpc::Task<void> listen(std::shared_ptr<Primary> primary);
  rpc::Task<bool> leave_layout(std::shared_ptr<Primary> primary);
  rpc::Task<void> join_layout(std::shared_ptr<Primary> primary);
  rpc::Task<void> name_backups(std::shared_ptr<Primary> primary);
  rpc::Task<void> change_layout(ShardId shard, std::vector<ShardReplica> backups);
  rpc::Task<void> tell(std::shared_ptr<Primary> primary, std::vector<ShardReplica> backups);

  Session& session_;
  ClusterMembers& members_;
  ShardTables& tables_;
  const TableLock& lock_;
  std::function<void()> pump_;
};

}  // namespace cairn
