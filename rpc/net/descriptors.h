// Descriptors that travel with bytes over a Unix socket (SCM_RIGHTS): how memory comes to be
// shared.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace cairn::rpc {

// Sends `bytes` and with them `descriptor`, of which the receiver gets a duplicate. False unless
// all of them went: a fresh socket has room for a hello, so anything else means that the peer is
// gone.
bool send_with_descriptor(int socket, std::span<const std::uint8_t> bytes, int descriptor);

// As recv(2), but calls `take` with each descriptor that came along; `take` owns it. Any other way
// of reading would lose them.
ssize_t receive_with_descriptors(int socket, void* to, std::size_t bytes,
                                 const std::function<void(int descriptor)>& take);

}  // namespace cairn::rpc
