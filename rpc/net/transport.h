// Which sockets a program uses. Apart from Network, so that programs can choose without knowing of
// event loops.
#pragma once
#include <cstdint>
#include <string_view>

namespace cairn::rpc {

// Each side decides for itself: a listener of kTcp offers no Unix socket, a dialler of kTcp asks
// for none.
enum class Transport : std::uint8_t {
  // a Unix socket and shared memory where the peer is on this host and offers them, TCP otherwise
  kAuto,
  kTcp,
  kUnix,  // Unix sockets only, no shared memory: dialling another host is FailedPrecondition
};
// "auto", "tcp", "unix". Errors  InvalidArgument.
Transport parse_transport(std::string_view text);

}  // namespace cairn::rpc
