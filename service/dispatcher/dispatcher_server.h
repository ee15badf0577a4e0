// DispatcherServer: a whole dispatcher of the data service, at one address.
//
//   DispatcherServer server(*reactor, *network, {.address = Address::parse("0.0.0.0:5050")});
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/base/incarnation.h"
#include "core/base/offload.h"
#include "core/disk/disk.h"
#include "rpc/loop/reactor.h"
#include "rpc/net/network.h"
#include "service/dispatcher/dispatcher.h"

namespace cairn::rpc {
class Acceptor;
struct AcceptorOptions;
}  // namespace cairn::rpc

namespace cairn::service {

// Every data service server's options for its place in the cluster.
struct Door {
  rpc::Address address;
  std::string cluster = "cairn";
  std::string token;
  bool insecure = false;  // allow an exposed address without a token
  std::uint32_t index = 0;
  ProcessIncarnation incarnation;  // none: drawn at random
};
rpc::AcceptorOptions acceptor_options(const Door& door, rpc::Role role, LogSink log);

// Thread: `reactor`'s. It, `network`, `disk` and `offload` must outlive the server.
class DispatcherServer {
 public:
  // Reads the journal, which blocks, and listens.
  //   Errors  the acceptor's; FailedPrecondition: the journal's folder is in use; DataLoss: it is
  //           damaged.
  DispatcherServer(rpc::Reactor& reactor, rpc::Network& network, Offload& offload, Disk& disk,
                   Door door, DispatcherOptions options);
  ~DispatcherServer();  // stop()

  const rpc::Address& address() const;
  std::string status_json() const;
  const JobBook& book() const { return dispatcher_->book(); }
  // Ends every connection. Idempotent.
  void stop();

 private:
  rpc::Reactor& reactor_;
  const Door door_;
  std::shared_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<rpc::Acceptor> acceptor_;
};

}  // namespace cairn::service
