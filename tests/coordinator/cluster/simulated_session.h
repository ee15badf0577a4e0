// The ground on which one part of the engine is tested alone: a session on a simulated reactor,
// network, disk and clock, without a cluster.
#pragma once
#include <memory>
#include <utility>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/session.h"
#include "coordinator/journal/recorder.h"
#include "core/disk/memory_disk.h"
#include "rpc/loop/sim_offload.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/net/sim_network.h"

namespace cairn {

// A fixture that has parts with tasks of their own calls session.tasks.cancel_all() in its
// destructor, as the engine does.
struct SimulatedSession {
  explicit SimulatedSession(EngineOptions options = {}) : options_(std::move(options)) {
    if (options_.session.number == 0) options_.session = 1;
  }

 private:
  EngineOptions options_;

 public:
  std::unique_ptr<rpc::SimReactor> owned = std::make_unique<rpc::SimReactor>();
  rpc::SimReactor& reactor = *owned;
  rpc::SimNetwork network{reactor};
  MemoryDisk disk;
  rpc::SimOffload offload{reactor, 1, Duration(0)};
  Session session{{reactor, network.host("chief"), offload, disk, reactor.clock()},
                  std::move(options_),
                  make_thread_waiting(),
                  [] {}};
  Recorder recorder{session};

  void run_ready() { reactor.run_ready(); }
  void run_for(Duration time) { reactor.advance(time); }
};

// A ps that is there and has no shard: a call to all of its shards is done at once.
inline Ps& add_ps(ClusterMembers& members) {
  auto ps = std::make_unique<Ps>();
  ps->index = static_cast<std::uint32_t>(members.ps.size());
  ps->name = "/job:ps/task:" + std::to_string(members.ps.size());
  ps->ready = true;
  members.ps.push_back(std::move(ps));
  return *members.ps.back();
}

}  // namespace cairn
