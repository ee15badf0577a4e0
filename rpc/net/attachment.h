// Attachment: bulk that leaves with a message from where it lies, instead of being copied into it.
//
//   auto orphanage = capnp::Orphanage::getForMessageContaining(results);
//   results.adoptValues(connection.attach(orphanage, Attachment(data, bytes, owner)));
//
// Cap'n Proto needs to know where external data lies, but it never reads them, and they may move
// until they leave. So it gets a key: an address in a range in which nothing can be read or
// written. Code that follows a key by mistake faults at once instead of reading whatever happens to
// be there.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "core/memory/loan.h"
#include "rpc/net/byte_stream.h"

namespace cairn::rpc {

// Bytes in one place or in several, each with an owner that keeps them. They must not change until
// their owner is let go of: on the same host the peer may still read them after they were sent.
// Behind the last one memory is readable up to the next multiple of 8, which is what messages count
// in.
class Attachment {
 public:
  Attachment() = default;  // nothing
  Attachment(const void* data, std::size_t bytes, std::shared_ptr<void> owner);
  explicit Attachment(std::vector<ByteStream::Piece> pieces);
  // `bytes` bytes that their owner may move elsewhere until they leave; the loan has them rounded
  // up to a multiple of 8.
  Attachment(std::shared_ptr<Loan> loan, std::size_t bytes);

  std::size_t bytes() const { return bytes_; }  // without the padding
  // Appends its pieces to those of a message, the padding included. It is empty afterwards.
  void append_to(std::vector<ByteStream::Piece>& pieces);

 private:
  void pad();

  std::size_t bytes_ = 0;
  ByteStream::Piece first_;  // most have one piece, which needs no vector
  std::vector<ByteStream::Piece> others_;
};

// The addresses that stand for attachments. One range serves the process; each message stream
// counts its own keys, which must differ only from those of its own attachments.
class AttachmentKeys {
 public:
  static constexpr std::size_t kAttachmentBytesMax = std::size_t{512} << 20;

  // A key for so many bytes, all of which lie in the range. Keys repeat after some 67 million.
  //   Errors  ResourceExhausted: above kAttachmentBytesMax, or no address space is left.
  const void* next(std::size_t bytes);
  static bool is_key(const void* data);

 private:
  std::size_t next_ = 0;
};

}  // namespace cairn::rpc
