#include "rpc/asio_stream.h"

#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <span>

#include "core/base/error.h"
#include "rpc/shared_memory.h"

namespace cairn::rpc {
namespace {

using boost::system::error_code;

kj::Exception stream_error(const error_code& error, const char* what) {
  namespace e = asio::error;
  bool gone = error == e::eof || error == e::connection_reset || error == e::broken_pipe ||
              error == e::connection_aborted || error == e::not_connected ||
              error == e::timed_out || error == e::operation_aborted;
  auto type = gone ? kj::Exception::Type::DISCONNECTED : kj::Exception::Type::FAILED;
  return kj::Exception(type, __FILE__, __LINE__,
                       kj::str("the connection ended (", what, ": ", error.message().c_str(), ")"));
}

constexpr size_t kGatheredMax = 16;  // pieces of one call
// between two looks at whether what was lent has been read
constexpr std::chrono::milliseconds kLingering{100};

}  // namespace

AsioStream::AsioStream(StreamSocket socket, std::string peer_address, StreamOptions options,
                       bool lends, bool shares)
    : core_(std::make_shared<Core>(std::move(socket))),
      peer_address_(std::move(peer_address)),
      options_(options),
      lends_(lends),
      shares_(shares) {
  core_->socket.non_blocking(true);
  ahead_.resize(options_.read_ahead);
}

AsioStream::~AsioStream() noexcept(false) {
  error_code ignored;
  if (core_->open && !corked_.empty() && !writing_)
    core_->socket.write_some(asio::buffer(corked_), ignored);
  ++core_->read_generation;
  ++core_->write_generation;
  if (std::exchange(core_->open, false) && !core_->lent.empty()) {
    core_->socket.shutdown(StreamSocket::shutdown_both, ignored);
    linger(core_);
  } else {
    core_->socket.close(ignored);
  }
}

// The other side may still read what was lent, if only until it sees the end.
void AsioStream::linger(const std::shared_ptr<Core>& core) {
  core->lent.release_all();
  error_code ignored;
  if (core->lent.empty()) {
    core->socket.close(ignored);
    return;
  }
  auto timer = std::make_shared<asio::steady_timer>(core->socket.get_executor(), kLingering);
  timer->async_wait([core, timer](error_code error) {
    if (!error) linger(core);
  });
}

// ---- reading

kj::Promise<size_t> AsioStream::tryRead(void* buffer, size_t min, size_t max) {
  const Read read = begin_read(buffer, min, max);
  if (read.complete()) return size_t{read.got};
  return read_some(read);
}

// With what was read ahead.
AsioStream::Read AsioStream::begin_read(void* buffer, size_t min, size_t max) {
  Read read{static_cast<char*>(buffer), min, max, std::min(max, ahead_end_ - ahead_begin_)};
  if (read.got > 0) std::memcpy(read.to, ahead_.data() + ahead_begin_, read.got);
  ahead_begin_ += read.got;
  return read;
}

std::size_t AsioStream::read_now(void* buffer, std::size_t bytes) {
  if (aborted_) return 0;
  Read read = begin_read(buffer, bytes, bytes);
  while (!read.complete() && !dry_ && !read_error_) {
    error_code error;
    const size_t got = receive(read, error);
    if (error == asio::error::would_block)
      dry_ = true;
    else if (error)
      read_error_ = error;
    else
      landed(read, got);
  }
  return read.got;
}

// What does not fit into the caller's buffer goes to the read-ahead buffer, in the same system
// call.
std::array<asio::mutable_buffer, 2> AsioStream::read_buffers(const Read& read) {
  return {asio::buffer(read.to + read.got, read.room()),
          asio::buffer(ahead_.data(), read.room() < ahead_.size() ? ahead_.size() : 0)};
}

void AsioStream::landed(Read& read, size_t bytes) {
  size_t room = read.room();
  dry_ = bytes < room + (room < ahead_.size() ? ahead_.size() : 0);
  // A sender that is as fast as this reader always has more: work that waits for an idle loop would
  // wait until the sender ends.
  turn_ += bytes;
  if (turn_ >= options_.read_turn) dry_ = true;
  if (dry_) turn_ = 0;
  size_t direct = std::min(bytes, room);
  read.got += direct;
  bytes_in_ += bytes;
  ahead_begin_ = 0;
  ahead_end_ = bytes - direct;
  // it may be an answer, whose question was read
  if (!core_->lent.empty()) core_->lent.release(bytes_out_);
}

size_t AsioStream::receive(const Read& read, error_code& error) {
  if (shares_ && options_.shared_bytes_max > 0) return receive_with_descriptors(read, error);
  return core_->socket.read_some(read_buffers(read), error);
}

// Any other way of reading would lose what comes along.
size_t AsioStream::receive_with_descriptors(const Read& read, error_code& error) {
  iovec piece{read.to + read.got, read.room()};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(core_->socket.native_handle(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0) {
    error = errno == EAGAIN || errno == EINTR ? error_code(asio::error::would_block)
                                              : error_code(errno, boost::system::system_category());
    return 0;
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= header->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + at, sizeof descriptor);
      shared_ = SharedMemory::adopt(descriptor, options_.shared_bytes_max);
    }
  }
  if (got == 0) error = asio::error::eof;
  return static_cast<size_t>(got);
}

void AsioStream::share(const std::shared_ptr<SharedMemory>& memory,
                       std::span<const std::uint8_t> bytes) {
  iovec piece{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int descriptor = memory->descriptor();
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  const ssize_t sent = ::sendmsg(core_->socket.native_handle(), &message, MSG_NOSIGNAL);
  // A fresh socket has room for a hello: anything else means that the other side is gone.
  if (sent != static_cast<ssize_t>(bytes.size()))
    throw UnavailableError(str("the other side ended the connection at once: ", peer_address_));
  bytes_out_ += bytes.size();
}

// The rest of a read once the socket ran dry: one promise, however many wake-ups it takes.
class AsioStream::ReadOp {
 public:
  ReadOp(kj::PromiseFulfiller<size_t>& fulfiller, AsioStream& stream, Read read)
      : fulfiller_(fulfiller), stream_(stream), core_(stream.core_), read_(read) {
    next();
  }
  ~ReadOp() {
    ++core_->read_generation;
    if (!done_) core_->read_signal.emit(asio::cancellation_type::terminal);
  }

 private:
  void next() {
    if (stream_.shares_ && stream_.options_.shared_bytes_max > 0) return wait();
    core_->socket.async_read_some(
        stream_.read_buffers(read_),
        asio::bind_cancellation_slot(core_->read_signal.slot(),
                                     [this, core = core_, generation = ++core_->read_generation](
                                         error_code error, size_t bytes) {
                                       if (core->read_generation == generation)
                                         landed(error, bytes);
                                     }));
  }
  void wait() {
    core_->socket.async_wait(
        StreamSocket::wait_read,
        asio::bind_cancellation_slot(
            core_->read_signal.slot(),
            [this, core = core_, generation = ++core_->read_generation](error_code error) {
              if (core->read_generation == generation) ready(error);
            }));
  }
  void ready(error_code error) {
    const size_t bytes = error ? 0 : stream_.receive(read_, error);
    if (error == asio::error::would_block) return wait();
    landed(error, bytes);
  }
  void landed(error_code error, size_t bytes) {
    if (!error) stream_.landed(read_, bytes);
    if (!error && !read_.complete()) return next();
    done_ = true;
    if (!error || error == asio::error::eof || stream_.aborted_) {
      fulfiller_.fulfill(size_t{read_.got});
    } else {
      fulfiller_.reject(stream_error(error, "read"));
    }
  }
  kj::PromiseFulfiller<size_t>& fulfiller_;
  AsioStream& stream_;
  std::shared_ptr<Core> core_;
  Read read_;
  bool done_ = false;
};

kj::Promise<size_t> AsioStream::read_some(Read read) {
  if (aborted_) return size_t{read.got};
  while (!read.complete()) {
    error_code error = std::exchange(read_error_, {});
    // it tries once itself: saves a failing read
    if (!error && dry_) return kj::newAdaptedPromise<size_t, ReadOp>(*this, read);
    size_t bytes = error ? 0 : receive(read, error);
    if (error == asio::error::would_block)
      return kj::newAdaptedPromise<size_t, ReadOp>(*this, read);
    if (error == asio::error::eof) return read.got;
    if (error) return stream_error(error, "read");
    landed(read, bytes);
  }
  return read.got;
}

// ---- writing

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

kj::Promise<void> AsioStream::write(std::vector<Piece> pieces) {
  if (broken_) return kj::Exception(*broken_);
  size_t total = 0;
  for (auto& piece : pieces) total += piece.bytes.size();
  if (total <= options_.cork) return cork(pieces);
  if (writing_)
    return drained().then(
        [this, waiting = std::move(pieces)]() mutable { return write(std::move(waiting)); });
  return flush(std::move(pieces));
}

// Answers before the bytes are out: an error comes with the next read or write.
kj::Promise<void> AsioStream::cork(const std::vector<Piece>& pieces) {
  for (auto& piece : pieces)
    corked_.insert(corked_.end(), piece.begin(), piece.begin() + piece.bytes.size());
  if (!writing_ && corked_.size() >= options_.batch) return flush({});
  if (!writing_ && !flush_planned_) {
    flush_planned_ = true;
    auto flush_all = [this]() -> kj::Promise<void> {
      flush_planned_ = false;
      // a bulk write began meanwhile; its end takes the rest along
      if (writing_) return kj::READY_NOW;
      return flush({});
    };
    flush_ = kj::evalLast(kj::mv(flush_all)).eagerlyEvaluate([this](kj::Exception&& error) {
      fail(kj::mv(error));
    });
  }
  if (corked_.size() <= options_.high_water) return kj::READY_NOW;
  return drained();
}

// True once all is sent; false at an error, would_block among them.
bool AsioStream::send_some(Outgoing& out, error_code& error) {
  for (;;) {
    while (out.first < out.pieces.size() && out.pieces[out.first].bytes.size() == 0) {
      out.pieces[out.first++].owner = nullptr;
      out.lending = false;
    }
    if (out.first == out.pieces.size()) return true;
    size_t bytes = send_first(out, error);
    if (error) return false;
    bytes_out_ += bytes;
    for (size_t at = out.first; bytes > 0; ++at) {
      auto& piece = out.pieces[at].bytes;
      const size_t gone = std::min(bytes, piece.size());
      piece = piece.slice(gone, piece.size());
      bytes -= gone;
    }
  }
}

// The first piece alone if it is lent, else with those behind it.
size_t AsioStream::send_first(Outgoing& out, error_code& error) {
  auto lendable = [&](const Piece& piece) {
    return lends_ && core_->lent.usable() && piece.owner != nullptr &&
           piece.bytes.size() >= LentPages::kBytesMin;
  };
  Piece& next = out.pieces[out.first];
  if (!out.lending && lendable(next)) {
    core_->lent.keep(std::move(next.owner), next.bytes.size(), bytes_out_ + next.bytes.size());
    out.lending = true;
  }
  if (out.lending && core_->lent.works()) {
    if (next.loan != nullptr) next.loan->pin();  // the kernel does not ask where they are
    const size_t sent = core_->lent.send_some(next.begin(), next.bytes.size(), error);
    if (sent > 0 || error) return sent;  // else the system refused
  }
  std::array<asio::const_buffer, kGatheredMax> gathered;
  size_t count = 0;
  for (size_t at = out.first; at < out.pieces.size() && count < kGatheredMax; ++at) {
    const Piece& piece = out.pieces[at];
    if (at > out.first && lendable(piece)) break;
    gathered[count++] = asio::const_buffer(piece.begin(), piece.bytes.size());
  }
  return core_->socket.write_some(std::span(gathered.data(), count), error);
}

class AsioStream::WriteOp {
 public:
  WriteOp(kj::PromiseFulfiller<void>& fulfiller, AsioStream& stream, Outgoing out)
      : fulfiller_(fulfiller), stream_(stream), core_(stream.core_), out_(std::move(out)) {
    wait();
  }
  ~WriteOp() {
    ++core_->write_generation;
    if (!done_) core_->write_signal.emit(asio::cancellation_type::terminal);
  }

 private:
  void wait() {
    core_->socket.async_wait(
        StreamSocket::wait_write,
        asio::bind_cancellation_slot(
            core_->write_signal.slot(),
            [this, core = core_, generation = ++core_->write_generation](error_code error) {
              if (core->write_generation == generation) ready(error);
            }));
  }
  void ready(error_code error) {
    const bool all = !error && stream_.send_some(out_, error);
    if (error == asio::error::would_block) return wait();
    done_ = true;
    if (all) return fulfiller_.fulfill();
    auto failure = stream_error(error, "write");
    stream_.fail(kj::cp(failure));
    fulfiller_.reject(kj::mv(failure));
  }
  kj::PromiseFulfiller<void>& fulfiller_;
  AsioStream& stream_;
  std::shared_ptr<Core> core_;
  Outgoing out_;
  bool done_ = false;
};

// Writes what was corked, then `pieces`.
kj::Promise<void> AsioStream::flush(std::vector<Piece> pieces) {
  if (corked_.empty() && pieces.empty()) return kj::READY_NOW;
  in_flight_.clear();
  in_flight_.swap(corked_);
  if (!in_flight_.empty())
    pieces.insert(pieces.begin(), {kj::arrayPtr(in_flight_.data(), in_flight_.size()), nullptr});
  Outgoing out{std::move(pieces)};
  error_code error;
  if (send_some(out, error)) return written();
  if (error != asio::error::would_block) {
    auto failure = stream_error(error, "write");
    fail(kj::cp(failure));
    return kj::mv(failure);
  }
  writing_ = true;
  return kj::newAdaptedPromise<void, WriteOp>(*this, std::move(out)).then([this] {
    return written();
  });
}

kj::Promise<void> AsioStream::written() {
  writing_ = false;
  if (!corked_.empty()) return flush({});
  for (auto& waiter : drain_waiters_) waiter->fulfill();
  drain_waiters_.clear();
  if (shutdown_pending_) shutdown_send();
  return kj::READY_NOW;
}

kj::Promise<void> AsioStream::drained() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  drain_waiters_.push_back(kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
}

void AsioStream::fail(kj::Exception&& error) {
  for (auto& waiter : drain_waiters_) waiter->reject(kj::cp(error));
  drain_waiters_.clear();
  if (!broken_) broken_ = std::make_unique<kj::Exception>(kj::mv(error));
  if (disconnect_ != nullptr) disconnect_fulfiller_->fulfill();
}

// ---- ending

kj::Promise<void> AsioStream::whenWriteDisconnected() {
  if (broken_) return kj::READY_NOW;
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

void AsioStream::shutdownWrite() {
  if (corked_.empty() && !writing_) {
    shutdown_send();
  } else {
    shutdown_pending_ = true;
  }
}

void AsioStream::shutdown_send() {
  error_code ignored;
  core_->socket.shutdown(StreamSocket::shutdown_send, ignored);
}

void AsioStream::abortRead() {
  error_code ignored;
  core_->socket.shutdown(StreamSocket::shutdown_receive, ignored);
}

void AsioStream::abort() {
  aborted_ = true;
  error_code ignored;
  core_->socket.cancel(ignored);
  core_->socket.shutdown(StreamSocket::shutdown_both, ignored);
  if (!broken_) fail(stream_error(asio::error::connection_aborted, "closed"));
}

void AsioStream::getsockopt(int level, int option, void* value, kj::uint* length) {
  socklen_t size = *length;
  KJ_SYSCALL(::getsockopt(core_->socket.native_handle(), level, option, value, &size));
  *length = size;
}

void AsioStream::setsockopt(int level, int option, const void* value, kj::uint length) {
  KJ_SYSCALL(::setsockopt(core_->socket.native_handle(), level, option, value, length));
}

kj::Maybe<int> AsioStream::getFd() const { return core_->socket.native_handle(); }

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
    return kj::heap<AsioStream>(std::move(socket), peer_address_, options, family_ == AF_UNIX,
                                shares_);
  }
  std::string peer_address() const override { return peer_address_; }

 private:
  int fd_;
  int family_;
  std::string peer_address_;
  bool shares_;
};

}  // namespace

std::unique_ptr<Socket> AsioStream::detach() {
  CAIRN_CHECK(ahead_begin_ == ahead_end_ && corked_.empty() && !writing_ && core_->lent.empty(),
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
