#include "rpc/net/socket_options.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <array>

#include "core/base/error.h"
#include "rpc/loop/reactor.h"
#include "rpc/net/network.h"

namespace cairn::rpc {
namespace {

std::string congestion_control(ByteStream& stream) {
  std::array<char, 64> name{};
  kj::uint size = name.size();
  stream.getsockopt(IPPROTO_TCP, TCP_CONGESTION, name.data(), &size);
  return name.data();
}

std::string congestion_control(int descriptor) {
  std::array<char, 64> name{};
  socklen_t size = name.size();
  ::getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size);
  return name.data();
}

TEST(SocketOptions, NeitherEndOfAConnectionWithinAHostPacesWhatItSends) {
  auto reactor = make_reactor();
  auto network = make_socket_network(Transport::kTcp);
  auto listener = network->listen(*reactor, Address::parse("127.0.0.1:0"));
  auto accepted = listener->accept();
  auto dialled = reactor->wait(network->dial(*reactor, listener->address()))->attach(*reactor, {});
  auto served = reactor->wait(kj::mv(accepted))->attach(*reactor, {});
  EXPECT_EQ(congestion_control(*dialled), "reno");
  EXPECT_EQ(congestion_control(*served), "reno");
}

TEST(SocketOptions, ASocketWithoutAPeerOnThisHostKeepsWhatTheSystemChose) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::string before = congestion_control(descriptor);
  tune_within_host(descriptor);
  EXPECT_EQ(congestion_control(descriptor), before);
  ::close(descriptor);
}

}  // namespace
}  // namespace cairn::rpc
