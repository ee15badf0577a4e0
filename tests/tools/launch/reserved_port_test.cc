#include "tools/launch/reserved_port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

namespace cairn::tools {
namespace {

// As a server of ours binds. -1 if it was refused.
int listen_on(std::uint16_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(port),
                      .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(fd, 1) == 0)
    return fd;
  ::close(fd);
  return -1;
}

TEST(ReservedPort, AServerListensOnItDiesAndComesBack) {
  ReservedPort port;

  for (int life = 0; life < 2; ++life) {
    int server = listen_on(port.port());
    ASSERT_GE(server, 0);
    ::close(server);
  }
}

TEST(ReservedPort, TwoServersCannotShareIt) {
  ReservedPort port;

  int server = listen_on(port.port());

  ASSERT_GE(server, 0);
  EXPECT_EQ(listen_on(port.port()), -1);
  ::close(server);
}

TEST(ReservedPort, NoTwoAreEqual) {
  std::vector<ReservedPort> ports(50);
  std::set<std::uint16_t> numbers;
  for (const auto& port : ports) numbers.insert(port.port());
  EXPECT_EQ(numbers.size(), ports.size());
}

}  // namespace
}  // namespace cairn::tools
