#include "rpc/net/network.h"

#include <charconv>

#include "core/base/error.h"
#include "rpc/net/connection.h"
#include "rpc/net/hello_io.h"
#include "rpc/net/shared_memory.h"

namespace cairn::rpc {
namespace {

[[noreturn]] void bad_address(std::string_view text, std::string_view why) {
  throw InvalidArgumentError(
      str("\"", text, "\" is not an address: ", why,
          "; expected host:port, tcp://host:port, unix:/path or sim://name"));
}

std::uint16_t parse_port(std::string_view text, std::string_view port) {
  std::uint16_t value = 0;
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  if (error != std::errc() || end != port.data() + port.size())
    bad_address(text, str("\"", port, "\" is no port (0 to 65535)"));
  return value;
}

Address parse_tcp(std::string_view text, std::string_view rest) {
  // The last colon, because an IPv6 address in brackets has colons of its own.
  auto colon = rest.rfind(':');
  if (colon == rest.npos) bad_address(text, "it has no port");
  auto host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != host.npos)
    bad_address(text, "an IPv6 address goes into brackets");
  if (host.empty()) bad_address(text, "it has no host (0.0.0.0 means all)");
  return {Address::Scheme::kTcp, std::string(host), parse_port(text, rest.substr(colon + 1))};
}

// A scheme's prefix taken off `text`.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Takes its arguments by value, since it outlives the caller's. The hello is exchanged over a
// stream that reads nothing ahead and corks nothing; then the socket is taken back, so that RPC
// begins on a fresh stream with the options of the connection.
Task<std::unique_ptr<Connection>> connect_task(Network& network, Reactor& reactor, Address address,
                                               Hello hello, ConnectionOptions options) {
  auto socket = co_await network.dial(reactor, address);
  auto where = socket->peer_address();
  auto stream = socket->attach(reactor, kPlainStream);
  auto shared = options.shared_bytes > 0 && stream->can_share()
                    ? SharedMemory::create(options.shared_bytes)
                    : nullptr;
  auto reply = co_await greet(*stream, hello, where, shared);
  if (!reply.accepted) throw_error(reply.code, reply.reason, task_name(reply.role, reply.task));
  if (!reply.shares) shared.reset();
  socket = stream->detach();
  PeerInfo peer{.role = reply.role,
                .task = reply.task,
                .incarnation = reply.incarnation,
                .session = reply.session,
                .term = {},
                .endpoint = hello.endpoint,
                .endpoints = reply.endpoints,
                .address = where,
                .shared = shared};
  co_return std::make_unique<Connection>(reactor, socket->attach(reactor, options.stream),
                                         Side::kDialler, peer, task_name(hello.role, hello.task),
                                         options);
}

}  // namespace

Address Address::parse(std::string_view text) {
  auto rest = text;
  if (take(rest, "unix:")) {
    take(rest, "//");
    if (rest.empty()) bad_address(text, "it has no path");
    return {Scheme::kUnix, std::string(rest), 0};
  }
  if (take(rest, "sim://")) {
    if (rest.empty()) bad_address(text, "it has no name");
    return {Scheme::kSim, std::string(rest), 0};
  }
  take(rest, "tcp://");
  if (rest.find("://") != rest.npos) bad_address(text, "its scheme is unknown");
  return parse_tcp(text, rest);
}

std::string Address::str() const {
  if (scheme == Scheme::kUnix) return "unix:" + host;
  if (scheme == Scheme::kSim) return "sim://" + host;
  auto shown = host.find(':') == host.npos ? host : "[" + host + "]";
  return "tcp://" + shown + ":" + std::to_string(port);
}

Transport parse_transport(std::string_view text) {
  if (text == "auto") return Transport::kAuto;
  if (text == "tcp") return Transport::kTcp;
  if (text == "unix") return Transport::kUnix;
  throw InvalidArgumentError(str("\"", text, "\" is no transport; expected auto, tcp or unix"));
}

kj::Promise<std::unique_ptr<Connection>> Network::connect(Reactor& reactor, const Address& address,
                                                          const Hello& hello, Duration deadline) {
  return connect(reactor, address, hello, deadline, ConnectionOptions{});
}

kj::Promise<std::unique_ptr<Connection>> Network::connect(Reactor& reactor, const Address& address,
                                                          const Hello& hello, Duration deadline,
                                                          const ConnectionOptions& options) {
  return reactor.with_deadline(connect_task(*this, reactor, address, hello, options), deadline,
                               cairn::str("connecting to ", address.str()));
}

}  // namespace cairn::rpc
