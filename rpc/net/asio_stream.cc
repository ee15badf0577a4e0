#include "rpc/net/asio_stream.h"

#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/base/error.h"
#include "rpc/net/descriptors.h"
#include "rpc/net/shared_memory.h"

namespace cairn::rpc {
namespace {

using boost::system::error_code;

// The pause between two looks at whether lent bytes were read: the kernel has no event for that.
constexpr std::chrono::milliseconds kLingering{100};

// Runs after the stream has gone, on what the core keeps alive. A closed socket no longer says how
// much the peer has not read, so the lent pages could be overwritten while the peer reads them. So
// the socket stays open, shut down, until nothing of it is lent.
void linger(const std::shared_ptr<SocketCore>& core) {
  error_code ignored;
  if (core->sender.release_all()) {
    core->socket.close(ignored);
    return;
  }
  auto timer = std::make_shared<asio::steady_timer>(core->socket.get_executor(), kLingering);
  timer->async_wait([core, timer](error_code error) {
    if (!error) linger(core);
  });
}

}  // namespace

// DISCONNECTED means to the caller: connect again. An aborted operation counts as that too, because
// only our own abort() cancels operations whose promise is still awaited.
kj::Exception stream_error(const error_code& error, const char* what) {
  namespace e = asio::error;
  const bool gone = error == e::eof || error == e::connection_reset || error == e::broken_pipe ||
                    error == e::connection_aborted || error == e::not_connected ||
                    error == e::timed_out || error == e::operation_aborted;
  const auto type = gone ? kj::Exception::Type::DISCONNECTED : kj::Exception::Type::FAILED;
  return kj::Exception(type, __FILE__, __LINE__,
                       kj::str("the connection ended (", what, ": ", error.message().c_str(), ")"));
}

AsioStream::AsioStream(StreamSocket socket, std::string peer_address, const StreamOptions& options,
                       PieceSender::Lending lending, bool shares)
    : core_(std::make_shared<SocketCore>(std::move(socket), lending)),
      peer_address_(std::move(peer_address)),
      shares_(shares),
      reader_(core_, options, shares),
      writer_(core_, options, [this] { failed(); }) {
  core_->socket.non_blocking(true);
}

// An answer that was corked in this turn of the loop gets one try: a destructor cannot wait.
AsioStream::~AsioStream() noexcept(false) {
  if (!core_->open) return;  // detached
  writer_.try_corked();
  core_->open = false;
  error_code ignored;
  if (core_->sender.lends()) {
    core_->socket.shutdown(StreamSocket::shutdown_both, ignored);
    linger(core_);
  } else {
    core_->socket.close(ignored);
  }
}

kj::Promise<void> AsioStream::write(const void* buffer, size_t size) {
  return write(
      std::vector<Piece>{{kj::arrayPtr(static_cast<const kj::byte*>(buffer), size), nullptr}});
}

kj::Promise<void> AsioStream::write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) {
  std::vector<Piece> list;
  list.reserve(pieces.size());
  for (auto& piece : pieces) list.push_back({piece, nullptr});
  return write(std::move(list));
}

// Goes past the writer, so sent_aside() counts the bytes: the sender finds out what the peer has
// read by positions in the whole stream.
void AsioStream::share(const std::shared_ptr<SharedMemory>& memory,
                       std::span<const std::uint8_t> bytes) {
  if (!send_with_descriptor(core_->socket.native_handle(), bytes, memory->descriptor()))
    throw UnavailableError(str("the other side ended the connection at once: ", peer_address_));
  core_->sender.sent_aside(bytes.size());
}

// ---- ending

void AsioStream::failed() {
  if (disconnect_ != nullptr) disconnect_fulfiller_->fulfill();
}

// The handler may run after the stream has gone, when `this` must not be used. It holds the core,
// whose `open` says whether the stream is still there.
kj::Promise<void> AsioStream::whenWriteDisconnected() {
  if (writer_.failed()) return kj::READY_NOW;
  if (disconnect_ == nullptr) {
    auto pair = kj::newPromiseAndFulfiller<void>();
    disconnect_fulfiller_ = kj::mv(pair.fulfiller);
    disconnect_ = pair.promise.fork();
    core_->socket.async_wait(StreamSocket::wait_error, [this, core = core_](error_code error) {
      if (!error && core->open) disconnect_fulfiller_->fulfill();
    });
  }
  return KJ_ASSERT_NONNULL(disconnect_).addBranch();
}

void AsioStream::abortRead() {
  error_code ignored;
  core_->socket.shutdown(StreamSocket::shutdown_receive, ignored);
}

// The reader is aborted first: a pending read, when its wait is cancelled, then ends like one at
// the end of the stream and keeps what it has.
void AsioStream::abort() {
  reader_.abort();
  error_code ignored;
  core_->socket.cancel(ignored);
  core_->socket.shutdown(StreamSocket::shutdown_both, ignored);
  if (!writer_.failed()) writer_.fail(stream_error(asio::error::connection_aborted, "closed"));
}

void AsioStream::getsockopt(int level, int option, void* value, kj::uint* length) {
  socklen_t size = *length;
  KJ_SYSCALL(::getsockopt(core_->socket.native_handle(), level, option, value, &size));
  *length = size;
}

void AsioStream::setsockopt(int level, int option, const void* value, kj::uint length) {
  KJ_SYSCALL(::setsockopt(core_->socket.native_handle(), level, option, value, length));
}

// ---- changing threads

namespace {

class FdSocket final : public Socket {
 public:
  FdSocket(int fd, int family, std::string peer_address, bool shares)
      : fd_(fd),
        family_(family),
        peer_address_(std::move(peer_address)),
        shares_(shares && family == AF_UNIX) {}
  ~FdSocket() override {
    if (fd_ >= 0) ::close(fd_);
  }
  kj::Own<ByteStream> attach(Reactor& reactor, const StreamOptions& options) override {
    auto& io = require_asio(reactor, "sockets").io();
    StreamSocket socket(io, asio::generic::stream_protocol(family_, 0), fd_);
    fd_ = -1;
    const auto lending =
        family_ == AF_UNIX ? PieceSender::Lending::kLargePieces : PieceSender::Lending::kNever;
    return kj::heap<AsioStream>(std::move(socket), peer_address_, options, lending, shares_);
  }
  std::string peer_address() const override { return peer_address_; }

 private:
  int fd_;
  int family_;
  std::string peer_address_;
  bool shares_;
};

}  // namespace

// Asio's socket does not tell its family, which the new socket object needs; the system does.
std::unique_ptr<Socket> AsioStream::detach() {
  CAIRN_CHECK(!reader_.holds_bytes() && writer_.idle() && !core_->sender.lends(),
              "a busy stream cannot change hands");
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(core_->socket.native_handle(), reinterpret_cast<sockaddr*>(&name), &size);
  core_->open = false;
  return make_fd_socket(core_->socket.release(), name.ss_family, peer_address_, shares_);
}

std::unique_ptr<Socket> make_fd_socket(int fd, int family, std::string peer_address, bool shares) {
  return std::make_unique<FdSocket>(fd, family, std::move(peer_address), shares);
}

}  // namespace cairn::rpc
