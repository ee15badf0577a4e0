// WorkerServer: a whole worker: one listening address, a control service, and lanes, each on a loop
// of its own.
//
//   WorkerServer server(*reactor, *network, {.address = Address::parse("127.0.0.1:0"), .lanes =
//   2}); reactor->run();
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/incarnation.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/offload.h"
#include "core/kernels/device.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/waits.h"
#include "rpc/net/network.h"
#include "rpc/server/newest_term.h"
#include "worker/lane/lane.h"

namespace cairn::rpc {
class Acceptor;
struct Endpoint;
}  // namespace cairn::rpc

namespace cairn::worker {

enum class LaneThreads : std::uint8_t {
  kOwn,     // a thread a lane
  kShared,  // all on the server's reactor: simulation
};

struct WorkerOptions {
  std::uint32_t index = 0;
  rpc::Address address;
  std::string cluster;
  std::string token;
  bool insecure = false;  // allow an exposed address without a token
  std::uint32_t lanes = 1;
  std::string lanes_why;  // for people: why so many
  // That lanes compute on, in turn, from the one on that is this worker's turn if all workers of a
  // machine have the same ones. They outlive the server. None: the CPU.
  std::vector<Device*> devices;
  bool deterministic = false;  // LaneOptions
  LaneThreads threads = LaneThreads::kOwn;
  ProcessIncarnation incarnation;  // none: drawn at random
  // for prefetch(); must outlive the server. nullptr: inline in simulation, a thread a lane else
  Offload* offload = nullptr;
  ShardLinkOptions link;
  // For datasets that come from a data service (service/consumer/consumers.h); empty: none is read.
  OpenElements open_elements;
  LogSink log = log_line;
};

// Thread: `reactor`'s, which serves control and must outlive this; so must `network`.
class WorkerServer {
 public:
  // Listens at once. Errors  the acceptor's; InvalidArgument: no lanes.
  WorkerServer(rpc::Reactor& reactor, rpc::Network& network, WorkerOptions options);
  ~WorkerServer();  // stop()

  const rpc::Address& address() const;
  ProcessIncarnation incarnation() const { return options_.incarnation; }
  std::string status_json() const;
  std::vector<rpc::NamedLoop> loops() const;  // of the lanes, where they have loops of their own
  // `handler(reason)` when a peer asks this worker to end. The default logs it.
  void on_shutdown(std::function<void(const std::string&)> handler);
  // Ends every connection and lane. Closures at work are dropped. Idempotent.
  void stop();

 private:
  struct LaneThread;
  Device& device_of(std::uint32_t lane) const;
  Json devices_json() const;
  rpc::Endpoint control_endpoint();
  rpc::Endpoint lane_endpoint(const LaneThread& thread);
  WorkerOptions options_;
  rpc::Reactor& reactor_;
  std::shared_ptr<rpc::NewestTerm> terms_ = std::make_shared<rpc::NewestTerm>();
  std::shared_ptr<WorkerServer*> alive_;  // services hold it weakly: gone with stop()
  std::vector<std::unique_ptr<LaneThread>> lane_threads_;
  std::function<void(const std::string&)> on_shutdown_;
  std::unique_ptr<rpc::Acceptor> acceptor_;
};

}  // namespace cairn::worker
