// SocketWriter: the writing half of an AsioStream. Small writes are corked: batched until the loop
// has nothing else to do, or a batch is full. A large one takes along what was corked before it,
// and what comes while it waits for the socket is corked behind it: bytes leave in the order of the
// writes. For this room's .cc files.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "rpc/net/socket_core.h"

namespace cairn::rpc {

class SocketWriter {
 public:
  // `on_failure` is called when a write has failed.
  SocketWriter(std::shared_ptr<SocketCore> core, const StreamOptions& options,
               std::function<void()> on_failure);
  ~SocketWriter() noexcept(false);

  // As ByteStream::write(). A corked write resolves before its bytes are out: an error comes with
  // the next one.
  kj::Promise<void> write(std::vector<ByteStream::Piece> pieces);
  // Ends this direction once everything is out.
  void shut_down();
  // Every write from now on fails with `error`.
  void fail(kj::Exception&& error);
  bool failed() const { return broken_ != nullptr; }
  bool idle() const { return corked_.empty() && !writing_; }
  // Writes what was corked as far as the socket takes it: the stream is about to go.
  void try_corked();

 private:
  class Rest;

  kj::Promise<void> cork(const std::vector<ByteStream::Piece>& pieces);
  void plan_flush();
  kj::Promise<void> flush(std::vector<ByteStream::Piece> pieces);
  kj::Promise<void> written();
  kj::Promise<void> drained();
  void shut_down_now();

  std::shared_ptr<SocketCore> core_;
  const std::size_t cork_max_, batch_, high_water_;
  std::function<void()> on_failure_;
  std::vector<kj::byte> corked_, in_flight_;
  bool writing_ = false, flush_planned_ = false, shut_down_pending_ = false;
  std::unique_ptr<kj::Exception> broken_;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> drain_waiters_;
  kj::Promise<void> flush_ = kj::READY_NOW;  // last: destroyed first
};

}  // namespace cairn::rpc
