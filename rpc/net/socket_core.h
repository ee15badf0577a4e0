// SocketCore: what an AsioStream's reader and writer share, and what outlives the stream while Asio
// still has handlers of theirs. For this room's .cc files.
#pragma once
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <utility>

#include "rpc/loop/asio_reactor.h"
#include "rpc/net/piece_sender.h"

namespace cairn::rpc {

using StreamSocket = asio::generic::stream_protocol::socket;

struct SocketCore {
  // Asio may still run a handler after it was cancelled. Each wait has a number of its own, and a
  // handler whose number is not the latest does nothing: what it would have touched may be gone.
  struct Waits {
    asio::cancellation_signal cancel;
    std::uint64_t latest = 0;
  };
  SocketCore(StreamSocket made, PieceSender::Lending lending)
      : socket(std::move(made)), sender(socket.native_handle(), lending) {}

  StreamSocket socket;
  PieceSender sender;
  Waits reads, writes;
  bool open = true;
};

// The exception for RPC when a stream has failed: DISCONNECTED if the connection is gone.
kj::Exception stream_error(const boost::system::error_code& error, const char* what);

}  // namespace cairn::rpc
