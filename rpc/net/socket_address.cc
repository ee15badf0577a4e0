#include "rpc/net/socket_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <memory>

#include "core/base/error.h"

namespace cairn::rpc {
namespace {

std::vector<SocketAddress> resolve(const std::string& host, std::uint16_t port, int flags,
                                   int& status) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  std::vector<SocketAddress> found;
  for (auto* entry = status == 0 ? list : nullptr; entry != nullptr; entry = entry->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    found.push_back(address);
  }
  return found;
}

const sockaddr_in& v4(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_in&>(address.storage);
}
const sockaddr_in6& v6(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_in6&>(address.storage);
}

// An abstract name begins with a zero byte and ends where the size of the address says; a path ends
// with a zero byte (unix(7)).
SocketAddress make_unix(const std::string& name, bool abstract) {
  SocketAddress address;
  auto& un = reinterpret_cast<sockaddr_un&>(address.storage);
  std::size_t used = name.size() + 1;  // the abstract mark in front, or the zero at the end
  if (used > sizeof un.sun_path) {
    throw InvalidArgumentError(str("the Unix socket path \"", name, "\" is longer than ",
                                   sizeof un.sun_path - 1, " bytes"));
  }
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + used);
  return address;
}

}  // namespace

// "localhost" needs no look-up, which may block, and means the IPv4 address for both ends.
std::vector<SocketAddress> numeric_addresses(const std::string& host, std::uint16_t port) {
  int status = 0;
  return resolve(host == "localhost" ? "127.0.0.1" : host, port, AI_NUMERICHOST, status);
}

std::vector<SocketAddress> lookup_addresses(const std::string& host, std::uint16_t port) {
  auto numeric = numeric_addresses(host, port);
  if (!numeric.empty()) return numeric;
  int status = 0;
  auto found = resolve(host, port, 0, status);
  if (found.empty())
    throw UnavailableError(str("no host \"", host, "\": ", ::gai_strerror(status)));
  return found;
}

SocketAddress unix_address(const std::string& path) { return make_unix(path, false); }
SocketAddress abstract_address(const std::string& name) { return make_unix(name, true); }

std::string numeric_host(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* bytes = address.family() == AF_INET ? static_cast<const void*>(&v4(address).sin_addr)
                                                  : &v6(address).sin6_addr;
  ::inet_ntop(address.family(), bytes, text, sizeof text);
  std::string host = text;
  return host == "0.0.0.0" || host == "::" ? "*" : host;
}

std::uint16_t port_of(const SocketAddress& address) {
  return ntohs(address.family() == AF_INET ? v4(address).sin_port : v6(address).sin6_port);
}

Address to_address(const SocketAddress& address) {
  if (address.family() == AF_UNIX)
    return {Address::Scheme::kUnix, reinterpret_cast<const sockaddr_un&>(address.storage).sun_path,
            0};
  auto host = numeric_host(address);
  if (host == "*") host = address.family() == AF_INET ? "0.0.0.0" : "::";
  return {Address::Scheme::kTcp, host, port_of(address)};
}

// The whole of 127.0.0.0/8 is loopback, not only its first address.
bool is_loopback(const SocketAddress& address) {
  if (address.family() == AF_INET) return (ntohl(v4(address).sin_addr.s_addr) >> 24) == 127;
  return address.family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(address).sin6_addr);
}

bool same_host(const SocketAddress& address, const sockaddr* other) {
  if (other == nullptr || other->sa_family != address.family()) return false;
  if (address.family() == AF_INET)
    return v4(address).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(other)->sin_addr.s_addr;
  return address.family() == AF_INET6 &&
         std::memcmp(&v6(address).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(other)->sin6_addr,
                     sizeof(in6_addr)) == 0;
}

// An address that belongs to one of our interfaces reaches this host without leaving it.
bool is_own(const SocketAddress& address) {
  if (is_loopback(address)) return true;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (auto* entry = list; entry != nullptr; entry = entry->ifa_next)
    if (same_host(address, entry->ifa_addr)) return true;
  return false;
}

std::string second_door(const std::string& numeric_host, std::uint16_t port) {
  return str("cairn/", numeric_host, ":", port);
}

}  // namespace cairn::rpc
