#include "rpc/net/socket_reader.h"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstring>

#include "rpc/net/descriptors.h"
#include "rpc/net/shared_memory.h"

namespace cairn::rpc {

using boost::system::error_code;

SocketReader::SocketReader(std::shared_ptr<SocketCore> core, const StreamOptions& options,
                           bool receives_descriptors)
    : core_(std::move(core)),
      turn_max_(options.read_turn),
      shared_bytes_max_(options.shared_bytes_max),
      receives_descriptors_(receives_descriptors && options.shared_bytes_max > 0) {
  ahead_.resize(options.read_ahead);
}

SocketReader::~SocketReader() { ++core_->reads.latest; }

kj::Promise<size_t> SocketReader::read(void* buffer, size_t min, size_t max) {
  const Read read = begin(buffer, min, max);
  if (read.complete()) return size_t{read.got};
  return read_some(read);
}

// Most messages are there whole when the loop wakes up. Taking them without a promise saves its
// memory and a turn of the loop. An error is left for the next read(), which has a promise to tell
// it with.
std::size_t SocketReader::read_now(void* buffer, std::size_t bytes) {
  if (aborted_) return 0;
  Read read = begin(buffer, bytes, bytes);
  while (!read.complete() && !dry_ && !error_) {
    error_code error;
    const size_t got = receive(read, error);
    if (error == asio::error::would_block)
      dry_ = true;
    else if (error)
      error_ = error;
    else
      landed(read, got);
  }
  return read.got;
}

// With what was read ahead.
SocketReader::Read SocketReader::begin(void* buffer, size_t min, size_t max) {
  Read read{static_cast<char*>(buffer), min, max, std::min(max, ahead_end_ - ahead_begin_)};
  if (read.got > 0) std::memcpy(read.to, ahead_.data() + ahead_begin_, read.got);
  ahead_begin_ += read.got;
  return read;
}

// Bytes that do not fit into the caller's buffer go to the read-ahead buffer, in the same system
// call.
std::array<asio::mutable_buffer, 2> SocketReader::buffers(const Read& read) {
  return {asio::buffer(read.to + read.got, read.room()),
          asio::buffer(ahead_.data(), read.room() < ahead_.size() ? ahead_.size() : 0)};
}

size_t SocketReader::receive(const Read& read, error_code& error) {
  if (!receives_descriptors_) return core_->socket.read_some(buffers(read), error);
  const auto take = [this](int descriptor) {
    shared_ = SharedMemory::adopt(descriptor, shared_bytes_max_);
  };
  const ssize_t got = receive_with_descriptors(core_->socket.native_handle(), read.to + read.got,
                                               read.room(), take);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0)
    error = asio::error::eof;
  else if (errno == EAGAIN || errno == EINTR)
    error = asio::error::would_block;
  else
    error = error_code(errno, boost::system::system_category());
  return 0;
}

void SocketReader::landed(Read& read, size_t bytes) {
  const size_t room = read.room();
  // Less than was asked for: the socket is empty, and to ask again would fail.
  dry_ = bytes < room + (room < ahead_.size() ? ahead_.size() : 0);
  // A sender that is as fast as this reader always has more: work that waits for an idle loop would
  // wait until the sender ends.
  turn_ += bytes;
  if (turn_ >= turn_max_) dry_ = true;
  if (dry_) turn_ = 0;
  const size_t direct = std::min(bytes, room);
  read.got += direct;
  bytes_in_ += bytes;
  ahead_begin_ = 0;
  ahead_end_ = bytes - direct;
  core_->sender.release();
}

// The rest of a read once the socket ran dry: one promise, however many wake-ups it takes.
class SocketReader::Rest {
 public:
  Rest(kj::PromiseFulfiller<size_t>& fulfiller, SocketReader& reader, Read read)
      : fulfiller_(fulfiller), reader_(reader), core_(reader.core_), read_(read) {
    next();
  }
  // A read that is dropped loses nothing: what has come lies in the socket, or in the caller's
  // buffer only if the read had ended.
  ~Rest() {
    ++core_->reads.latest;
    if (!done_) core_->reads.cancel.emit(asio::cancellation_type::terminal);
  }

 private:
  void next() {
    // Asio's own read would drop descriptors: then it only waits, and receive() reads.
    if (reader_.receives_descriptors_) return wait();
    core_->socket.async_read_some(
        reader_.buffers(read_),
        asio::bind_cancellation_slot(
            core_->reads.cancel.slot(),
            [this, core = core_, number = ++core_->reads.latest](error_code error, size_t bytes) {
              if (core->reads.latest == number) landed(error, bytes);
            }));
  }
  void wait() {
    core_->socket.async_wait(
        StreamSocket::wait_read,
        asio::bind_cancellation_slot(
            core_->reads.cancel.slot(),
            [this, core = core_, number = ++core_->reads.latest](error_code error) {
              if (core->reads.latest == number) ready(error);
            }));
  }
  void ready(error_code error) {
    const size_t bytes = error ? 0 : reader_.receive(read_, error);
    if (error == asio::error::would_block) return wait();
    landed(error, bytes);
  }
  void landed(error_code error, size_t bytes) {
    if (!error) reader_.landed(read_, bytes);
    if (!error && !read_.complete()) return next();
    done_ = true;
    if (!error || error == asio::error::eof || reader_.aborted_) {
      fulfiller_.fulfill(size_t{read_.got});
    } else {
      fulfiller_.reject(stream_error(error, "read"));
    }
  }
  kj::PromiseFulfiller<size_t>& fulfiller_;
  SocketReader& reader_;
  std::shared_ptr<SocketCore> core_;
  Read read_;
  bool done_ = false;
};

kj::Promise<size_t> SocketReader::read_some(Read read) {
  if (aborted_) return size_t{read.got};
  while (!read.complete()) {
    error_code error = std::exchange(error_, {});
    // Asio tries once by itself before it waits, which saves a read that would fail.
    if (!error && dry_) return kj::newAdaptedPromise<size_t, Rest>(*this, read);
    const size_t bytes = error ? 0 : receive(read, error);
    if (error == asio::error::would_block) return kj::newAdaptedPromise<size_t, Rest>(*this, read);
    if (error == asio::error::eof) return read.got;
    if (error) return stream_error(error, "read");
    landed(read, bytes);
  }
  return read.got;
}

}  // namespace cairn::rpc
