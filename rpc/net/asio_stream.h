// AsioStream: a ByteStream over a TCP or Unix socket in an Asio loop. It puts together what has a
// file of its own each: SocketReader, SocketWriter, PieceSender (large pieces without a copy), and
// the descriptors that travel over Unix sockets. For this room's .cc files.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rpc/net/byte_stream.h"
#include "rpc/net/socket_core.h"
#include "rpc/net/socket_reader.h"
#include "rpc/net/socket_writer.h"

namespace cairn::rpc {

class AsioStream final : public ByteStream {
 public:
  // `shares`: descriptors may travel too.
  AsioStream(StreamSocket socket, std::string peer_address, const StreamOptions& options,
             PieceSender::Lending lending, bool shares);
  // The peer may still read lent bytes, if only until it sees the end: then the socket stays,
  // without its stream, until the peer has read them.
  ~AsioStream() noexcept(false);

  kj::Promise<size_t> tryRead(void* buffer, size_t min, size_t max) override {
    return reader_.read(buffer, min, max);
  }
  std::size_t read_now(void* buffer, std::size_t bytes) override {
    return reader_.read_now(buffer, bytes);
  }
  kj::Promise<void> write(const void* buffer, size_t size) override;
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override;
  kj::Promise<void> write(std::vector<Piece> pieces) override {
    return writer_.write(std::move(pieces));
  }
  kj::Promise<void> whenWriteDisconnected() override;
  void shutdownWrite() override { writer_.shut_down(); }
  void abortRead() override;
  void getsockopt(int level, int option, void* value, kj::uint* length) override;
  void setsockopt(int level, int option, const void* value, kj::uint length) override;
  kj::Maybe<int> getFd() const override { return core_->socket.native_handle(); }

  std::uint64_t bytes_in() const override { return reader_.bytes_in(); }
  std::uint64_t bytes_out() const override { return core_->sender.bytes_out(); }
  void abort() override;
  bool can_share() const override { return shares_; }
  void share(const std::shared_ptr<SharedMemory>& memory,
             std::span<const std::uint8_t> bytes) override;
  std::shared_ptr<SharedMemory> take_shared() override { return reader_.take_shared(); }
  std::unique_ptr<Socket> detach() override;

 private:
  void failed();

  std::shared_ptr<SocketCore> core_;
  std::string peer_address_;
  bool shares_;
  kj::Maybe<kj::ForkedPromise<void>> disconnect_;
  kj::Own<kj::PromiseFulfiller<void>> disconnect_fulfiller_;
  SocketReader reader_;
  SocketWriter writer_;  // last: its planned flush is destroyed first
};

// A connected, non-blocking socket that this object owns. `family` is AF_INET, AF_INET6 or AF_UNIX.
// `shares`: where it is a Unix socket, memory may be shared over it.
std::unique_ptr<Socket> make_fd_socket(int fd, int family, std::string peer_address,
                                       bool shares = true);

}  // namespace cairn::rpc
