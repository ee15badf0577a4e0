// Parameter servers and workers on a thread of this process, over sockets, with the real disk: the
// checkpoints of such a cluster are files as any other's.
#pragma once
#include <memory>
#include <vector>

#include "coordinator/engine/engine_host.h"
#include "core/base/offload.h"
#include "ps/server/ps_server.h"
#include "rpc/loop/reactor_thread.h"
#include "storage/row_store.h"
#include "strategy/servers/parameter_server_strategy.h"
#include "worker/worker_server.h"

namespace cairn::testing {

class LoopbackCluster {
 public:
  // `journal`: its folder; empty: there is none.
  explicit LoopbackCluster(std::uint32_t ps, std::shared_ptr<const Partitioner> partitioner,
                           std::string journal = "") {
    options_.variables.partitioner = std::move(partitioner);
    options_.journal.folder = std::move(journal);
    servers_.run([&] {
      for (std::uint32_t i = 0; i < ps; ++i) {
        ps::PsServerOptions options;
        options.index = i;
        options.cluster = options_.cluster_id;
        ps_.push_back(std::make_unique<ps::PsServer>(servers_.reactor(), *sockets_, *disks_,
                                                     *store_, options));
        options_.cluster.add_task("ps", ps_.back()->address().str());
      }
      worker::WorkerOptions options;
      options.address = rpc::Address::parse("127.0.0.1:0");
      options.cluster = options_.cluster_id;
      worker_ = std::make_unique<worker::WorkerServer>(servers_.reactor(), *sockets_, options);
      options_.cluster.add_task("worker", worker_->address().str());
    });
    start_again();
  }
  // The coordinator's process ends, and another one begins.
  void start_again() {
    strategy_.reset();
    strategy_ = std::make_unique<ParameterServerStrategy>(
        start_engine_thread(options_, rpc::Transport::kAuto));
  }
  ~LoopbackCluster() {
    strategy_.reset();
    servers_.run([this] {
      worker_.reset();
      ps_.clear();
    });
  }
  LoopbackCluster(const LoopbackCluster&) = delete;
  LoopbackCluster& operator=(const LoopbackCluster&) = delete;
  ParameterServerStrategy& strategy() { return *strategy_; }

 private:
  EngineOptions options_;
  std::unique_ptr<rpc::Network> sockets_ = rpc::make_socket_network();
  std::unique_ptr<storage::RowStore> store_ = storage::make_rocks_row_store();
  std::unique_ptr<Offload> disks_ = make_thread_offload(1);
  rpc::ReactorThread servers_{"cluster"};
  std::vector<std::unique_ptr<ps::PsServer>> ps_;
  std::unique_ptr<worker::WorkerServer> worker_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
};

}  // namespace cairn::testing
