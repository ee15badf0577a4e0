// capnp::MessageStream whose bulk segments land in pooled buffers, and which knows when memory lent
// to an outgoing message is free again. Format: Cap'n Proto's stream framing, and acknowledgements
// between messages where the stream wants them.
#pragma once
#include <capnp/serialize-async.h>

#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "rpc/buffer_pool.h"
#include "rpc/byte_stream.h"

namespace cairn::rpc {

class PooledMessageStream final : public capnp::MessageStream {
 public:
  // Refuses to receive messages above `message_bytes_max`.
  PooledMessageStream(ByteStream& stream, BufferPool& pool, std::size_t message_bytes_max);

  // Keeps `owner` until nobody reads from a message with a segment that starts at `data` any more:
  // neither this process, nor the other side where the socket refers to our memory. Until then the
  // bytes must not change.
  void lease(std::span<const std::byte> data, std::shared_ptr<void> owner);
  // The same for a segment that `data`, which no other has, only names: the pieces, each with its
  // owner, go in its stead.
  void lease(const void* data, std::vector<ByteStream::Piece> pieces);
  // Of messages that have not come here yet, and perhaps never will.
  std::size_t leased() const { return leases_.size(); }
  std::size_t leased_bytes() const { return leased_bytes_; }
  void drop_leases();

  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fds, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratch) override;
  kj::Promise<void> writeMessage(
      kj::ArrayPtr<const int> fds,
      kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override;
  kj::Promise<void> writeMessages(
      kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) override;
  kj::Maybe<int> getSendBufferSize() override;
  kj::Promise<void> end() override;

 private:
  class Message;
  struct Lease {
    std::shared_ptr<void> owner;
    std::vector<ByteStream::Piece> pieces;
    std::size_t bytes = 0;
  };
  void keep(const void* data, Lease lease);
  Lease claim(const void* data);
  using Received = kj::Maybe<capnp::MessageReaderAndFds>;
  kj::Promise<Received> read_on(kj::Own<Message> message);
  void acknowledge();

  ByteStream& stream_;
  BufferPool& pool_;
  std::size_t message_words_max_;
  std::uint64_t sent_before_;  // the stream's bytes_out() before the first message
  // bytes since then, of whole messages; of those the other side has been told of
  std::uint64_t read_ = 0, told_ = 0;
  kj::Promise<void> telling_ = kj::READY_NOW;
  std::unordered_multimap<const void*, Lease> leases_;
  std::size_t leased_bytes_ = 0;
};

}  // namespace cairn::rpc
