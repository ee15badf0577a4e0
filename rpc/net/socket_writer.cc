#include "rpc/net/socket_writer.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

namespace cairn::rpc {

using boost::system::error_code;

SocketWriter::SocketWriter(std::shared_ptr<SocketCore> core, const StreamOptions& options,
                           std::function<void()> on_failure)
    : core_(std::move(core)),
      cork_max_(options.cork),
      batch_(options.batch),
      high_water_(options.high_water),
      on_failure_(std::move(on_failure)) {}

SocketWriter::~SocketWriter() noexcept(false) { ++core_->writes.latest; }

void SocketWriter::try_corked() {
  error_code ignored;
  if (!corked_.empty() && !writing_) core_->socket.write_some(asio::buffer(corked_), ignored);
}

kj::Promise<void> SocketWriter::write(std::vector<ByteStream::Piece> pieces) {
  if (broken_) return kj::Exception(*broken_);
  size_t total = 0;
  for (auto& piece : pieces) total += piece.bytes.size();
  if (total <= cork_max_) return cork(pieces);
  // A caller waits for each write before the next one, but corked writes resolve at once: a large
  // one may come while they are still being written.
  if (writing_)
    return drained().then(
        [this, waiting = std::move(pieces)]() mutable { return write(std::move(waiting)); });
  return flush(std::move(pieces));
}

// Answers before the bytes are out, which KJ's contract allows: an error then comes with the next
// write or read. Above the high-water mark the caller waits, so that a slow peer does not fill our
// memory.
kj::Promise<void> SocketWriter::cork(const std::vector<ByteStream::Piece>& pieces) {
  for (auto& piece : pieces)
    corked_.insert(corked_.end(), piece.begin(), piece.begin() + piece.bytes.size());
  // A full batch leaves at once, so that two busy ends overlap instead of taking turns.
  if (!writing_ && corked_.size() >= batch_) return flush({});
  if (!writing_ && !flush_planned_) plan_flush();
  if (corked_.size() <= high_water_) return kj::READY_NOW;
  return drained();
}

// evalLast runs when the loop has nothing else to do: what one turn brings forth leaves in one
// call.
void SocketWriter::plan_flush() {
  flush_planned_ = true;
  auto flush_all = [this]() -> kj::Promise<void> {
    flush_planned_ = false;
    // A bulk write began meanwhile, and its end takes the rest along.
    if (writing_) return kj::READY_NOW;
    return flush({});
  };
  flush_ = kj::evalLast(kj::mv(flush_all)).eagerlyEvaluate([this](kj::Exception&& error) {
    fail(kj::mv(error));
  });
}

// The rest of a write once the socket is full.
class SocketWriter::Rest {
 public:
  Rest(kj::PromiseFulfiller<void>& fulfiller, SocketWriter& writer, Outgoing out)
      : fulfiller_(fulfiller), writer_(writer), core_(writer.core_), out_(std::move(out)) {
    wait();
  }
  ~Rest() {
    ++core_->writes.latest;
    if (!done_) core_->writes.cancel.emit(asio::cancellation_type::terminal);
  }

 private:
  void wait() {
    core_->socket.async_wait(
        StreamSocket::wait_write,
        asio::bind_cancellation_slot(
            core_->writes.cancel.slot(),
            [this, core = core_, number = ++core_->writes.latest](error_code error) {
              if (core->writes.latest == number) ready(error);
            }));
  }
  void ready(error_code error) {
    const bool all = !error && core_->sender.send_some(out_, error);
    if (error == asio::error::would_block) return wait();
    done_ = true;
    if (all) return fulfiller_.fulfill();
    auto failure = stream_error(error, "write");
    writer_.fail(kj::cp(failure));
    fulfiller_.reject(kj::mv(failure));
  }
  kj::PromiseFulfiller<void>& fulfiller_;
  SocketWriter& writer_;
  std::shared_ptr<SocketCore> core_;
  Outgoing out_;
  bool done_ = false;
};

// Writes what was corked, then `pieces`. The corked bytes move to in_flight_ first, where they stay
// until they are out, for further small writes may come while the socket is full.
kj::Promise<void> SocketWriter::flush(std::vector<ByteStream::Piece> pieces) {
  if (corked_.empty() && pieces.empty()) return kj::READY_NOW;
  in_flight_.clear();
  in_flight_.swap(corked_);
  if (!in_flight_.empty())
    pieces.insert(pieces.begin(), {kj::arrayPtr(in_flight_.data(), in_flight_.size()), nullptr});
  Outgoing out{std::move(pieces)};
  error_code error;
  if (core_->sender.send_some(out, error)) return written();
  if (error != asio::error::would_block) {
    auto failure = stream_error(error, "write");
    fail(kj::cp(failure));
    return kj::mv(failure);
  }
  writing_ = true;
  return kj::newAdaptedPromise<void, Rest>(*this, std::move(out)).then([this] {
    return written();
  });
}

// Bytes corked during the write go first; waiters for room go when nothing is left.
kj::Promise<void> SocketWriter::written() {
  writing_ = false;
  if (!corked_.empty()) return flush({});
  for (auto& waiter : drain_waiters_) waiter->fulfill();
  drain_waiters_.clear();
  if (shut_down_pending_) shut_down_now();
  return kj::READY_NOW;
}

kj::Promise<void> SocketWriter::drained() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  drain_waiters_.push_back(kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
}

void SocketWriter::fail(kj::Exception&& error) {
  for (auto& waiter : drain_waiters_) waiter->reject(kj::cp(error));
  drain_waiters_.clear();
  if (!broken_) broken_ = std::make_unique<kj::Exception>(kj::mv(error));
  on_failure_();
}

void SocketWriter::shut_down() {
  if (idle()) {
    shut_down_now();
  } else {
    shut_down_pending_ = true;
  }
}

void SocketWriter::shut_down_now() {
  error_code ignored;
  core_->socket.shutdown(StreamSocket::shutdown_send, ignored);
}

}  // namespace cairn::rpc
