// EngineHost: who runs the engine's loop, and how a user's thread talks to it.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <utility>

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
  // Runs `work` on the engine's loop and waits for it. It must own all that it uses: a caller that
  // looks up (core/base/look_up.h) may give it up, and the work goes on.
  //   Errors  what it throws; what the caller's LookUp throws.
  virtual void run(std::function<rpc::Task<void>(Engine&)> work) = 0;
  // The same of work with a result.
  template <typename T>
  T ask(std::function<rpc::Task<T>(Engine&)> work) {
    auto result = std::make_shared<std::optional<T>>();
    run([work = std::move(work), result](Engine& engine) -> rpc::Task<void> {
      result->emplace(co_await work(engine));
    });
    return std::move(**result);
  }
};

// A thread of its own, real sockets, the system's clock and disk. Returns when the cluster is
// connected, and what an earlier coordinator had sent has ended (EngineOptions::journal);
// `cairn status` is answered from the beginning.
//   Errors  Engine::start()'s and journal::Journal::open()'s; what options.start.on_wait throws, or
//           the caller's LookUp.
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
