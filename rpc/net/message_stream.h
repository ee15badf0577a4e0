// capnp::MessageStream whose bulk segments land in pooled buffers, and which puts attachments into
// the messages that go out. Format: Cap'n Proto's stream framing.
#pragma once
#include <capnp/serialize-async.h>

#include <cstddef>
#include <functional>
#include <unordered_map>

#include "rpc/loop/buffer_pool.h"
#include "rpc/net/attachment.h"
#include "rpc/net/byte_stream.h"

namespace cairn::rpc {

class PooledMessageStream final : public capnp::MessageStream {
 public:
  // Refuses to receive messages above `message_bytes_max`.
  PooledMessageStream(ByteStream& stream, BufferPool& pool, std::size_t message_bytes_max);

  // A key for an attachment: a segment that begins at it stands for the attachment, which goes in
  // its stead when its message is written.
  //   Errors  those of AttachmentKeys::next().
  const void* attach(Attachment attachment);
  // The bytes attached to messages that have not been written yet, and perhaps never will be.
  std::size_t attached_bytes() const { return attached_bytes_; }
  bool has_attachments() const { return !attached_.empty(); }
  void drop_attachments();
  // Called when a message was written and there are still attachments that none has claimed.
  void on_unclaimed(std::function<void()> call) { on_unclaimed_ = std::move(call); }

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
  using Received = kj::Maybe<capnp::MessageReaderAndFds>;
  kj::Promise<Received> read_on(kj::Own<Message> message);

  ByteStream& stream_;
  BufferPool& pool_;
  std::size_t message_words_max_;
  AttachmentKeys keys_;
  std::unordered_map<const void*, Attachment> attached_;  // by key
  std::size_t attached_bytes_ = 0;
  std::function<void()> on_unclaimed_;
};

}  // namespace cairn::rpc
