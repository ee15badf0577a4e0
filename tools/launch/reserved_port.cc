#include "tools/launch/reserved_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace cairn::tools {

// Port 0 has the system choose a free one. Choosing a number and releasing it again, for the server
// to bind, would leave a moment in which any other process could take it.
ReservedPort::ReservedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  int yes = 1;
  if (fd_ < 0 || ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(fd_, generic, size) != 0 || ::getsockname(fd_, generic, &size) != 0) {
    std::string why = std::strerror(errno);
    if (fd_ >= 0) ::close(fd_);
    throw ResourceExhaustedError("no free TCP port on 127.0.0.1: " + why);
  }
  port_ = ntohs(address.sin_port);
}

ReservedPort::ReservedPort(ReservedPort&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

ReservedPort::~ReservedPort() {
  if (fd_ >= 0) ::close(fd_);
}

std::string ReservedPort::address() const { return str("127.0.0.1:", port_); }

}  // namespace cairn::tools
