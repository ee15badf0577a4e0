// PieceSender: the pieces of a write into a socket. Large ones with an owner are lent, where the
// socket is of this host (zero_copy_pages.h); the others are copied, as many as possible in one
// call.
#pragma once
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rpc/net/byte_stream.h"
#include "rpc/net/zero_copy_pages.h"

namespace cairn::rpc {

// The pieces still to be written: from `first` on, of which the first one is cut to its rest.
struct Outgoing {
  std::vector<ByteStream::Piece> pieces;
  std::size_t first = 0;
  bool lending = false;  // the first piece was begun by reference, and has to be ended so
};

// Thread  that of the socket's reactor.
class PieceSender {
 public:
  // Only a Unix socket lends: between hosts there is nothing to refer to, and between network
  // namespaces of one host it was measured to gain nothing (bench/notebook.md).
  enum class Lending : std::uint8_t { kNever, kLargePieces };

  PieceSender(int socket, Lending lending) : socket_(socket), lent_(socket), lending_(lending) {}

  // True once everything is sent; false at an error, would_block among them: then call again.
  bool send_some(Outgoing& out, boost::system::error_code& error);
  // Bytes that were sent by other means.
  void sent_aside(std::size_t bytes) { bytes_out_ += bytes; }
  std::uint64_t bytes_out() const { return bytes_out_; }

  // Lets go of lent memory that the peer has read. To be called when something has come: it may be
  // an answer, and then its question was read.
  void release() {
    if (!lent_.empty()) lent_.release(bytes_out_);
  }
  // The same after the last byte, when nothing more will come; true once nothing is lent any more.
  bool release_all() {
    lent_.release_all();
    return lent_.empty();
  }
  bool lends() const { return !lent_.empty(); }

 private:
  bool lendable(const ByteStream::Piece& piece) const;
  std::size_t send_first(Outgoing& out, boost::system::error_code& error);
  std::size_t send_copies(const Outgoing& out, boost::system::error_code& error) const;

  int socket_;
  ZeroCopyPages lent_;
  Lending lending_;
  std::uint64_t bytes_out_ = 0;
};

}  // namespace cairn::rpc
