// Socket addresses: numeric forms, which of them lie on this host, and the second door in the
// abstract Unix namespace. For this room's .cc files.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/net/network.h"

namespace cairn::rpc {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// A numeric IPv4 or IPv6 address or "localhost"; empty: a name that must be looked up.
std::vector<SocketAddress> numeric_addresses(const std::string& host, std::uint16_t port);
// As above, names looked up too; blocks: for listening, at start. Errors Unavailable: no such host.
std::vector<SocketAddress> lookup_addresses(const std::string& host, std::uint16_t port);

// Errors  InvalidArgument: `path` is longer than a Unix socket address holds.
SocketAddress unix_address(const std::string& path);
SocketAddress abstract_address(const std::string& name);

// "127.0.0.1", "::1"; a wildcard is "*". And the port.
std::string numeric_host(const SocketAddress& address);
std::uint16_t port_of(const SocketAddress& address);
Address to_address(const SocketAddress& address);
bool is_loopback(const SocketAddress& address);
// The same IPv4 or IPv6 address, whatever the ports.
bool same_host(const SocketAddress& address, const sockaddr* other);
// Loopback, or an address of one of this host's interfaces.
bool is_own(const SocketAddress& address);

// The abstract name under which a listener at (host, port) also takes Unix connections. It belongs
// to the network namespace, as the port does, and goes with the process: there is no file to clean
// up.
std::string second_door(const std::string& numeric_host, std::uint16_t port);

}  // namespace cairn::rpc
