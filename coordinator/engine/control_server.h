// ControlServer: where `cairn status` asks a running coordinator, at the chief's address.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "rpc/net/network.h"

namespace cairn {

class Engine;

struct ControlServerOptions {
  std::string address;  // "host:port"
  std::string cluster;
  std::string token;
  bool insecure = false;
};

// Thread: the engine's.
class ControlServer {
 public:
  // Listens at once. Errors Unavailable: the address is taken; FailedPrecondition: an exposed
  // address without a token.
  ControlServer(Engine& engine, rpc::Reactor& reactor, rpc::Network& network,
                ControlServerOptions options);
  ~ControlServer();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Where a coordinator answers, and by which names it knows those who may ask.
struct ControlAddress {
  std::string address, cluster, token;
};
// The calls behind `cairn status`, `cairn ckpt save` and `cairn stop`.
//   Errors  Unavailable: no coordinator is there. PermissionDenied: another cluster or token.
// Its status, as JSON.
std::string ask_status(const ControlAddress& coordinator);
// A checkpoint now, by the policy that the program has set; its folder, as the coordinator sees it.
//   Errors  FailedPrecondition: the program has set none. DeadlineExceeded: not made in `limit`.
//   Those of the save.
std::string ask_save(const ControlAddress& coordinator, Duration limit);
// Asks the program to save and end, and waits until its coordinator is gone.
//   Errors  FailedPrecondition: the program does not look whether it is to stop. DeadlineExceeded:
//   it has not ended in `limit`.
void ask_stop(const ControlAddress& coordinator, Duration limit);

}  // namespace cairn
