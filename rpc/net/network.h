// Network: how this process reaches others. SocketNetwork (TCP, Unix sockets) and SimNetwork
// implement it.
#pragma once
#include <kj/async.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "rpc/loop/reactor.h"
#include "rpc/net/byte_stream.h"
#include "rpc/net/hello.h"
#include "rpc/net/transport.h"

namespace cairn::rpc {

class Connection;
struct ConnectionOptions;

struct Address {
  enum class Scheme : std::uint8_t { kTcp, kUnix, kSim };
  Scheme scheme = Scheme::kTcp;
  // name, IPv4 or IPv6 without brackets; path of a Unix socket; name in a simulation
  std::string host;
  std::uint16_t port = 0;  // TCP only; 0 lets the system choose when listening

  // "tcp://host:port", "host:port", "[::1]:80", "unix:/path", "sim://name".
  // Errors  InvalidArgument naming the text and what is expected.
  static Address parse(std::string_view text);
  std::string str() const;  // "tcp://host:port", "unix:/path", "sim://name"
  friend bool operator==(const Address&, const Address&) = default;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // Resolves to the next stream that a peer opened. Errors of single streams are swallowed;
  // Unavailable once the listener is gone.
  virtual kj::Promise<std::unique_ptr<Socket>> accept() = 0;
  virtual const Address& address() const = 0;  // as bound: the port is the real one
  // True when peers from other hosts can get here.
  virtual bool exposed() const = 0;
};

class Network {
 public:
  virtual ~Network() = default;

  // Binds and listens at once. Errors InvalidArgument: not an address of this network; Unavailable:
  // cannot bind.
  virtual std::unique_ptr<Listener> listen(Reactor& reactor, const Address& address) = 0;
  // A raw stream to `address`. Errors Unavailable: refused or not reachable. Unbounded: connect()
  // adds the deadline.
  virtual kj::Promise<std::unique_ptr<Socket>> dial(Reactor& reactor, const Address& address) = 0;

  // Dials, greets and starts RPC on `reactor`.
  //   Errors  Unavailable: no listener there, refused for now, or lost; repeat. DeadlineExceeded
  //           after `deadline` in all. PermissionDenied, FailedPrecondition: the other side refused
  //           `hello` (its reason, both sides named).
  //   Thread  `reactor`'s.
  kj::Promise<std::unique_ptr<Connection>> connect(Reactor& reactor, const Address& address,
                                                   const Hello& hello, Duration deadline);
  kj::Promise<std::unique_ptr<Connection>> connect(Reactor& reactor, const Address& address,
                                                   const Hello& hello, Duration deadline,
                                                   const ConnectionOptions& options);
};

// A network of TCP and Unix sockets. Holds no state: one serves all threads.
//   A TCP listener opens, unless `transport` is kTcp, a second door in the abstract Unix namespace,
//   named after its address; peers on the same host and of the same user find it there.
std::unique_ptr<Network> make_socket_network(Transport transport = Transport::kAuto);

}  // namespace cairn::rpc
