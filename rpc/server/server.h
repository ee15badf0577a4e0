// Acceptor: one listening address per process. It greets every peer and hands its stream to the
// reactor of the endpoint that the peer asked for.
#pragma once
#include <capnp/capability.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/incarnation.h"
#include "core/base/log.h"
#include "rpc/net/connection.h"
#include "rpc/net/network.h"

namespace cairn::rpc {

// The service of one thread. `serve` runs on `reactor`'s thread for each connection; the Connection
// lives until it ends, and the capability from `serve` is dropped first.
struct Endpoint {
  Reactor* reactor = nullptr;
  std::function<capnp::Capability::Client(const PeerInfo& peer, Connection& connection)> serve;
};

struct AcceptorOptions {
  std::string cluster;
  Role role = Role::kTool;  // this process
  std::uint32_t task = 0;
  ProcessIncarnation incarnation;
  std::uint64_t session = 0;  // sent to diallers; 0: none
  std::string token;
  bool insecure = false;  // allow an exposed address without a token
  Duration hello_deadline = std::chrono::seconds(5);
  std::size_t connections_max = 4096;  // over all endpoints; a further one is refused
  // streams that have not yet greeted; a further one drops the oldest
  std::size_t hellos_max = 256;
  ConnectionOptions connection;
  // May refuse a well-formed hello with a reason (a fenced incarnation, say). On endpoint 0's
  // thread.
  std::function<std::optional<std::string>(const Hello& hello)> admit;
  // Makes an endpoint beyond those that replies count, for the first accepted hello that wants it;
  // none: there is no such endpoint. What it makes stays. On endpoint 0's thread.
  //   Errors  the hello is refused with them.
  std::function<std::optional<Endpoint>(const Hello& hello)> further;
  LogSink log = log_line;
};

// A stream that sends rubbish, is too slow, or has the wrong version, cluster or token costs a log
// line and nothing else.
//   Thread  that of endpoints[0].reactor. The other reactors may end before or after the acceptor,
//           its own after.
class Acceptor {
 public:
  // Listens at once. Errors Network::listen's; FailedPrecondition: an exposed address with neither
  // token nor insecure.
  Acceptor(Network& network, const Address& address, AcceptorOptions options,
           std::vector<Endpoint> endpoints);
  ~Acceptor();  // stop()

  const Address& address() const;  // with the real port
  std::size_t connections() const;
  void set_session(std::uint64_t session);
  // Stops listening and ends every connection; those of other reactors end on their threads, soon.
  // Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::rpc
