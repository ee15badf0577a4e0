#include "rpc/net/piece_sender.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <cerrno>

namespace cairn::rpc {
namespace {

using boost::system::error_code;

constexpr std::size_t kGatheredMax = 16;  // pieces of one call

}  // namespace

bool PieceSender::send_some(Outgoing& out, error_code& error) {
  for (;;) {
    while (out.first < out.pieces.size() && out.pieces[out.first].bytes.size() == 0) {
      out.pieces[out.first++].owner = nullptr;
      out.lending = false;
    }
    if (out.first == out.pieces.size()) return true;
    std::size_t bytes = send_first(out, error);
    if (error) return false;
    bytes_out_ += bytes;
    for (std::size_t at = out.first; bytes > 0; ++at) {
      auto& piece = out.pieces[at].bytes;
      const std::size_t gone = std::min(bytes, piece.size());
      piece = piece.slice(gone, piece.size());
      bytes -= gone;
    }
  }
}

bool PieceSender::lendable(const ByteStream::Piece& piece) const {
  return lending_ == Lending::kLargePieces && lent_.usable() && piece.owner != nullptr &&
         piece.bytes.size() >= ZeroCopyPages::kBytesMin;
}

// The first piece alone if it is lent, else with those behind it.
std::size_t PieceSender::send_first(Outgoing& out, error_code& error) {
  ByteStream::Piece& next = out.pieces[out.first];
  if (!out.lending && lendable(next)) {
    // Kept from before the first byte goes: the peer may read a part while the rest still waits
    // here. A piece that was begun by reference is continued so, because its next bytes stand in
    // the pipe already.
    lent_.keep(std::move(next.owner), next.bytes.size(), bytes_out_ + next.bytes.size());
    out.lending = true;
  }
  if (out.lending && lent_.works()) {
    // From here on the kernel reads these pages by itself, and it does not know where a loan moves.
    if (next.loan != nullptr) next.loan->pin();
    const std::size_t sent = lent_.send_some(next.begin(), next.bytes.size(), error);
    if (sent > 0 || error) return sent;  // else the system refused, and what is left is copied
  }
  return send_copies(out, error);
}

// Up to the next piece that is worth lending.
std::size_t PieceSender::send_copies(const Outgoing& out, error_code& error) const {
  std::array<iovec, kGatheredMax> gathered;
  std::size_t count = 0;
  for (std::size_t at = out.first; at < out.pieces.size() && count < kGatheredMax; ++at) {
    const ByteStream::Piece& piece = out.pieces[at];
    if (at > out.first && lendable(piece)) break;
    gathered[count++] = {const_cast<kj::byte*>(piece.begin()), piece.bytes.size()};
  }
  msghdr message{};
  message.msg_iov = gathered.data();
  message.msg_iovlen = count;
  for (;;) {
    const ssize_t sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EINTR) continue;
    error = errno == EAGAIN ? error_code(boost::asio::error::would_block)
                            : error_code(errno, boost::system::system_category());
    return 0;
  }
}

}  // namespace cairn::rpc
