// ConfigKeeper: keeps durably who the coordinator is, and of each shard its epoch, its primary and
// the backups that may take over, before anybody acts on it (coordinator/journal/cluster_config.h).
//
// The program that starts a coordinator with a store has seen to it that no other one is at work
// with it: the later term counts, whoever has it.
//   Thread  the engine's. The store is read and written on the Offload. If there is no store,
//           nothing is kept, and the coordinator has term 1.
//   Errors  FailedPrecondition: another coordinator has taken a later term, and the queue is failed
//           as well; or the store is another cluster's. DeadlineExceeded: the store did not answer.
//           Those of ConfigStore.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "coordinator/cluster/session.h"
#include "coordinator/journal/cluster_config.h"
#include "core/rows/layout.h"
#include "rpc/loop/task.h"

namespace cairn {

class ConfigKeeper {
 public:
  explicit ConfigKeeper(Session& session) : session_(session) {}

  // Takes the next term. To be called before the first task is dialled.
  rpc::Task<void> take_term();
  // How an earlier coordinator of the session left its shards; empty: there is none, or it had
  // none.
  const std::vector<ShardLayout>& found() const { return found_; }
  // Keeps what the layout says of its shards. To be called before any shard is configured by that
  // layout, and before a primary is told of other backups. One call at a time, with ever newer
  // layouts.
  rpc::Task<void> keep_shards(std::shared_ptr<const Layout> layout);

 private:
  struct Kept {
    std::uint64_t version = 0;  // of the store
    ClusterConfig config;
  };
  rpc::Task<Kept> read();
  rpc::Task<bool> replace(ClusterConfig config);
  rpc::Task<void> on_store(std::function<void()> work, const char* doing);

  Session& session_;
  Kept kept_;
  std::vector<ShardLayout> found_;
};

}  // namespace cairn
