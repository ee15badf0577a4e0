// ConfigKeeper: keeps durably who the coordinator is, and which epoch each shard is in, before
// anybody is told of it (coordinator/journal/cluster_config.h).
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
  // Keeps the epochs of the layout's shards. To be called before any shard is configured by that
  // layout.
  rpc::Task<void> keep_epochs(std::shared_ptr<const Layout> layout);

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
};

}  // namespace cairn
