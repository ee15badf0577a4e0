// ByteStream over a TCP or Unix socket in an Asio loop: gather writes, read-ahead, corking, over
// Unix sockets large pieces without a copy. For this room's .cc files.
#pragma once
#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "rpc/asio_reactor.h"
#include "rpc/byte_stream.h"
#include "rpc/lent_pages.h"

namespace cairn::rpc {

using StreamSocket = asio::generic::stream_protocol::socket;

class AsioStream final : public ByteStream {
 public:
  // `lends`: large pieces go by reference, as into a Unix socket they can. `shares`: descriptors
  // may travel too.
  AsioStream(StreamSocket socket, std::string peer_address, StreamOptions options, bool lends,
             bool shares);
  ~AsioStream() noexcept(false);

  kj::Promise<size_t> tryRead(void* buffer, size_t min, size_t max) override;
  kj::Promise<void> write(const void* buffer, size_t size) override;
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override;
  kj::Promise<void> write(std::vector<Piece> pieces) override;
  std::size_t read_now(void* buffer, std::size_t bytes) override;
  kj::Promise<void> whenWriteDisconnected() override;
  void shutdownWrite() override;
  void abortRead() override;
  void getsockopt(int level, int option, void* value, kj::uint* length) override;
  void setsockopt(int level, int option, const void* value, kj::uint length) override;
  kj::Maybe<int> getFd() const override;

  std::uint64_t bytes_in() const override { return bytes_in_; }
  std::uint64_t bytes_out() const override { return bytes_out_; }
  void abort() override;
  bool can_share() const override { return shares_; }
  void share(const std::shared_ptr<SharedMemory>& memory,
             std::span<const std::uint8_t> bytes) override;
  std::shared_ptr<SharedMemory> take_shared() override { return std::exchange(shared_, nullptr); }
  std::unique_ptr<Socket> detach() override;

 private:
  // Outlives the stream while handlers are queued; a handler of an old generation does nothing.
  struct Core {
    explicit Core(StreamSocket made) : socket(std::move(made)), lent(socket.native_handle()) {}
    StreamSocket socket;
    LentPages lent;
    asio::cancellation_signal read_signal, write_signal;
    std::uint64_t read_generation = 0, write_generation = 0;
    bool open = true;
  };
  struct Read {
    char* to;
    size_t min, max, got;
    bool complete() const { return got >= min && got > 0; }
    size_t room() const { return max - got; }
  };
  // What is being written: pieces from `first` on, of which the first is what is left of it.
  struct Outgoing {
    std::vector<Piece> pieces;
    size_t first = 0;
    bool lending = false;  // the first one was begun so
  };
  class ReadOp;
  class WriteOp;

  Read begin_read(void* buffer, size_t min, size_t max);
  std::array<asio::mutable_buffer, 2> read_buffers(const Read& read);
  void landed(Read& read, size_t bytes);
  size_t receive(const Read& read, boost::system::error_code& error);
  size_t receive_with_descriptors(const Read& read, boost::system::error_code& error);
  kj::Promise<size_t> read_some(Read read);

  kj::Promise<void> cork(const std::vector<Piece>& pieces);
  kj::Promise<void> flush(std::vector<Piece> pieces);
  bool send_some(Outgoing& out, boost::system::error_code& error);
  size_t send_first(Outgoing& out, boost::system::error_code& error);
  static void linger(const std::shared_ptr<Core>& core);
  kj::Promise<void> written();
  kj::Promise<void> drained();
  void fail(kj::Exception&& error);
  void shutdown_send();

  std::shared_ptr<Core> core_;
  std::string peer_address_;
  StreamOptions options_;
  bool lends_, shares_;
  std::shared_ptr<SharedMemory> shared_;  // received
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;

  std::vector<char> ahead_;
  size_t ahead_begin_ = 0, ahead_end_ = 0;
  bool dry_ = false;  // the last read emptied the socket, or it is the loop's turn
  size_t turn_ = 0;   // bytes read since it last was
  boost::system::error_code read_error_;  // seen by read_now(), for the next read

  std::vector<kj::byte> corked_, in_flight_;
  bool writing_ = false, flush_planned_ = false, shutdown_pending_ = false;
  std::unique_ptr<kj::Exception> broken_;
  bool aborted_ = false;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> drain_waiters_;
  kj::Maybe<kj::ForkedPromise<void>> disconnect_;
  kj::Own<kj::PromiseFulfiller<void>> disconnect_fulfiller_;
  kj::Promise<void> flush_ = kj::READY_NOW;  // last: destroyed first
};

// A connected, non-blocking socket that this object owns. `family` is AF_INET, AF_INET6 or AF_UNIX.
// `shares`: where it is a Unix socket, memory may be shared over it.
std::unique_ptr<Socket> make_fd_socket(int fd, int family, std::string peer_address,
                                       bool shares = true);

}  // namespace cairn::rpc
