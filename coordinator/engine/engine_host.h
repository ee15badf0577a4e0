// EngineHost: who runs the engine's loop, and how a user's thread talks to it.
#pragma once
#include <functional>
#include <memory>

#include "coordinator/cluster/engine_options.h"
#include "rpc/loop/task.h"
#include "rpc/net/network.h"

namespace cairn {

class Engine;
class Waiting;
class Disk;
class Offload;

// Thread: any but the engine's own.
class EngineHost {
 public:
  virtual ~EngineHost() = default;
  virtual Engine& engine() = 0;
  // Runs `work` on the engine's loop and waits for it. Errors: what it throws.
  virtual void run(std::function<rpc::Task<void>(Engine&)> work) = 0;
};

// A thread of its own, real sockets, the system's clock and disk. Returns when the cluster is
// connected; `cairn status` is answered from the beginning.
//   Errors  Engine::start()'s; what options.start.on_wait throws.
std::unique_ptr<EngineHost> start_engine_thread(EngineOptions options, rpc::Transport transport);

// Everything on one simulated reactor, which the caller's waits drive. The parts outlive the host.
struct SimulatedParts {
  rpc::Reactor& reactor;
  rpc::Network& network;
  Offload& offload;
  Disk& disk;
};
std::unique_ptr<EngineHost> start_simulated_engine(EngineOptions options, SimulatedParts parts);

}  // namespace cairn
