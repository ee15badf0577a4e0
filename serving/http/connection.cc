#include "serving/http/connection.h"

#include <boost/asio/error.hpp>
#include <utility>

#include "serving/http/http_error.h"
#include "serving/http/response_text.h"

namespace cairn::serving {
namespace {

constexpr std::string_view kContinueLine = "HTTP/1.1 100 Continue\r\n\r\n";
// A body up to this size is copied behind its head, which is cheaper than a second buffer.
constexpr std::size_t kSmallBody = 4 << 10;
// Buffers that a large answer or a long header has left behind are given back.
constexpr std::size_t kKeptCapacity = 16 << 10;
// Buffers up to this size do not count towards buffered_max, so that well-behaved clients are
// served while others fill it.
constexpr std::size_t kFreeBytes = 16 << 10;
constexpr std::size_t kLingerMax = 64 << 20;

void give_back(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeptCapacity) buffer.shrink_to_fit();
}

bool would_block(const boost::system::error_code& error) {
  return error == boost::asio::error::would_block || error == boost::asio::error::try_again;
}

}  // namespace

template <typename Stream>
Connection<Stream>::Connection(std::shared_ptr<HttpLoop> loop, Stream stream, std::string remote)
    : loop_(std::move(loop)),
      stream_(std::move(stream)),
      reader_(loop_->limits()),
      moved_(loop_->now()) {
  if (!loop_->options().access_log) return;
  record_ = std::make_unique<AccessRecord>();
  record_->remote = std::move(remote);
}

// An exception here (there is no memory, in practice) costs this connection, not the server.
template <typename Stream>
template <typename Action>
void Connection<Stream>::guarded(Action action) {
  try {
    action();
  } catch (const std::exception&) {
    close();
  }
}

template <typename Stream>
void Connection<Stream>::send(HttpResponse response) {
  if (loop_->is_own_thread()) {
    deliver(std::move(response));
  } else {
    loop_->send(this->shared_from_this(), std::move(response));
  }
}

template <typename Stream>
void Connection<Stream>::deliver(HttpResponse response) {
  if (phase_ != Phase::kHandling) return;  // the client has gone
  if (in_handler_) {
    ready_ = std::move(response);
    return;
  }
  guarded([&] {
    answer(std::move(response), Then::kNextRequest);
    if (phase_ == Phase::kReading) run(kept_);
  });
}

template <typename Stream>
void Connection<Stream>::wait_readable() {
  if (waiting_) return;
  waiting_ = true;
  stream_.wait_readable([self = this->shared_from_this()](ErrorCode error) {
    self->waiting_ = false;
    const bool reads = self->phase_ == Phase::kReading || self->phase_ == Phase::kLingering;
    if (error || !reads) return;
    self->guarded([&] { self->on_readable(); });
  });
}

template <typename Stream>
void Connection<Stream>::on_readable() {
  if (phase_ == Phase::kLingering) return drop_bytes();
  auto& scratch = loop_->scratch();
  ErrorCode error;
  const std::size_t bytes = stream_.read_some(scratch.data(), scratch.size(), error);
  if (would_block(error)) return wait_readable();
  if (error) return close();  // the client's end of the connection, too
  moved_ = loop_->now();
  if (kept_.empty()) return run({scratch.data(), bytes});
  kept_.append(scratch.data(), bytes);
  run(kept_);
}

template <typename Stream>
void Connection<Stream>::run(std::string_view bytes) {
  while (phase_ == Phase::kReading && !bytes.empty()) {
    if (!read_request(bytes)) break;
  }
  keep(bytes);
  if (phase_ == Phase::kReading) wait_readable();
}

// The bytes lie in kept_ itself or in the scratch buffer, which the next connection overwrites.
template <typename Stream>
void Connection<Stream>::keep(std::string_view bytes) {
  if (phase_ == Phase::kClosed) return;
  const bool inside = bytes.data() >= kept_.data() && bytes.data() < kept_.data() + kept_.size();
  if (bytes.empty()) {
    give_back(kept_);
  } else if (inside) {
    kept_.erase(0, static_cast<std::size_t>(bytes.data() - kept_.data()));
  } else {
    kept_.assign(bytes);
  }
  if (!account() && phase_ != Phase::kReading) cut_off();
}

// False: more bytes are needed.
template <typename Stream>
bool Connection<Stream>::read_request(std::string_view& bytes) {
  if (!reader_.begun()) {
    began_ = loop_->now();
    if (record_) record_->begun = system_clock().now();
  }
  bytes.remove_prefix(reader_.read(bytes));
  switch (reader_.state()) {
    case RequestReader::State::kReading:
      if (account()) return false;
      refuse(error_response(
          429, str("all bodies that are being read have more than ", loop_->options().buffered_max,
                   " bytes together: repeat the request later")));
      return true;
    case RequestReader::State::kContinue:
      reader_.go_on();
      head_ = kContinueLine;
      then_ = Then::kBody;
      write();
      return true;
    case RequestReader::State::kRefused: refuse(reader_.refusal()); return true;
    case RequestReader::State::kComplete: handle(); return true;
  }
  return false;
}

template <typename Stream>
void Connection<Stream>::handle() {
  phase_ = Phase::kHandling;
  if (record_) log_request();
  in_handler_ = true;
  try {
    loop_->handled();
    loop_->handler()(reader_.take(), HttpReply(this->shared_from_this()));
  } catch (...) {
    // If the handler has handed the reply on before it threw, the answer comes from there.
    // Otherwise the reply's destructor has put one here, which names no cause.
    if (ready_) ready_ = error_response(std::current_exception());
  }
  in_handler_ = false;
  if (!ready_) return;
  HttpResponse response = std::move(*ready_);
  ready_.reset();
  if (phase_ == Phase::kHandling) answer(std::move(response), Then::kNextRequest);
}

template <typename Stream>
void Connection<Stream>::refuse(const HttpResponse& response) {
  loop_->counters().refused.fetch_add(1, std::memory_order_relaxed);
  if (record_) log_request();
  reader_.take();  // gives the memory of its body back
  answer(response, Then::kLinger);
}

template <typename Stream>
void Connection<Stream>::answer(HttpResponse response, Then then) {
  const bool keep_alive = then == Then::kNextRequest && reader_.keep_alive() && !ending_;
  then_ = then == Then::kNextRequest && !keep_alive ? Then::kClose : then;
  status_ = response.status;
  rest_after_ = response.rest;
  moved_ = began_ = loop_->now();  // from here on the client is waited for, not the handler
  append_head(head_, response, {keep_alive, reader_.http11(), loop_->date()});
  body_bytes_ = 0;
  if (has_body(response.status) && !reader_.is_head()) {
    body_bytes_ = response.body.size();
    if (response.body.size() <= kSmallBody) {
      head_ += response.body;
    } else {
      body_ = std::move(response.body);
    }
  }
  write();
}

template <typename Stream>
void Connection<Stream>::write() {
  phase_ = Phase::kWriting;
  while (sent_ < head_.size() + body_.size()) {
    const std::string_view head = head_, body = body_;
    ErrorCode error;
    const std::size_t bytes = sent_ < head.size()
                                  ? stream_.write_some(head.substr(sent_), body, error)
                                  : stream_.write_some(body.substr(sent_ - head.size()), {}, error);
    if (would_block(error)) {
      if (!account()) return cut_off();
      return stream_.wait_writable([self = this->shared_from_this()](ErrorCode failed) {
        if (failed || self->phase_ != Phase::kWriting) return;
        self->guarded([&] {
          self->write();
          if (self->phase_ == Phase::kReading) self->run(self->kept_);
        });
      });
    }
    if (error) return close();
    sent_ += bytes;
    moved_ = loop_->now();
  }
  written();
}

template <typename Stream>
void Connection<Stream>::written() {
  if (record_ && then_ != Then::kBody) log_answer();
  sent_ = 0;
  give_back(head_);
  give_back(body_);
  account();
  switch (then_) {
    case Then::kBody: phase_ = Phase::kReading; return;
    case Then::kNextRequest:
      reader_.next();
      phase_ = Phase::kReading;
      if (rest_after_ > Duration::zero()) rest();
      return;
    case Then::kClose: return close();
    case Then::kLinger: return linger();
  }
}

template <typename Stream>
void Connection<Stream>::rest() {
  phase_ = Phase::kResting;
  rest_ = std::make_unique<boost::asio::steady_timer>(loop_->context(), loop_->spread(rest_after_));
  rest_->async_wait([self = this->shared_from_this()](boost::system::error_code error) {
    if (!error && self->phase_ == Phase::kResting) self->guarded([&] { self->wake(); });
  });
}

template <typename Stream>
void Connection<Stream>::wake() {
  rest_.reset();
  phase_ = Phase::kReading;
  moved_ = loop_->now();
  run(kept_);
}

template <typename Stream>
void Connection<Stream>::linger() {
  stream_.shutdown_send();
  phase_ = Phase::kLingering;
  moved_ = loop_->now();
  wait_readable();
}

template <typename Stream>
void Connection<Stream>::drop_bytes() {
  auto& scratch = loop_->scratch();
  ErrorCode error;
  lingered_ += stream_.read_some(scratch.data(), scratch.size(), error);
  if ((error && !would_block(error)) || lingered_ > kLingerMax) return close();
  wait_readable();
}

template <typename Stream>
bool Connection<Stream>::is_late() const {
  const auto& options = loop_->options();
  const auto since = [&](std::uint32_t tick, Duration limit) {
    return loop_->now() - tick > loop_->ticks(limit);
  };
  if (phase_ == Phase::kHandling || phase_ == Phase::kResting) return false;
  if (is_idle()) return since(moved_, options.idle_timeout);
  return since(moved_, options.progress_timeout) || since(began_, options.transfer_timeout);
}

template <typename Stream>
void Connection<Stream>::tick() {
  if (!is_late()) return;
  if (phase_ == Phase::kLingering) return close();  // its answer was sent in time
  if (phase_ != Phase::kReading || is_idle()) return cut_off();
  loop_->counters().cut_off.fetch_add(1, std::memory_order_relaxed);
  const auto self = this->shared_from_this();
  const auto seconds = [](Duration limit) { return std::chrono::duration<double>(limit).count(); };
  guarded([&] {
    refuse(error_response(
        408, str("no byte of the request came for ", seconds(loop_->options().progress_timeout),
                 " s, or not all of it within ", seconds(loop_->options().transfer_timeout),
                 " s: send it faster, or in parts")));
  });
}

template <typename Stream>
void Connection<Stream>::end() {
  ending_ = true;
  if (phase_ == Phase::kLingering) return close();
  const auto self = this->shared_from_this();
  if (phase_ == Phase::kResting) guarded([&] { wake(); });
  if (!is_idle()) return;
  // A request may have come that the loop has not yet seen: then it is under way.
  guarded([&] { on_readable(); });
  if (is_idle()) close();
}

template <typename Stream>
void Connection<Stream>::close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  // A reply may keep this connection alive for long, but not its memory. kept_ stays, because run()
  // may be reading it.
  body_ = {};
  reader_.take();
  rest_.reset();
  loop_->hold(std::exchange(held_, 0), 0);
  stream_.close();
  loop_->remove(*this);
}

template <typename Stream>
void Connection<Stream>::cut_off() {
  loop_->counters().cut_off.fetch_add(1, std::memory_order_relaxed);
  close();
}

// Tells the loop how large this connection's buffers are. False: they have grown, and all together
// are larger than they may be.
template <typename Stream>
bool Connection<Stream>::account() {
  std::size_t bytes = 0;
  for (const std::size_t buffer :
       {reader_.request().body.capacity(), kept_.capacity(), body_.capacity()}) {
    if (buffer > kFreeBytes) bytes += buffer;
  }
  return bytes == held_ || loop_->hold(std::exchange(held_, bytes), bytes);
}

template <typename Stream>
void Connection<Stream>::log_request() {
  const HttpRequest& request = reader_.request();
  record_->method = request.method;
  record_->target = request.target;
  record_->bytes_in = request.body.size();
}

template <typename Stream>
void Connection<Stream>::log_answer() {
  AccessLine line;
  line.remote = record_->remote;
  line.method = record_->method;
  line.target = record_->target;
  line.status = status_;
  line.bytes_in = record_->bytes_in;
  line.bytes_out = body_bytes_;
  line.microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(system_clock().now() - record_->begun)
          .count();
  loop_->options().access_log(line);
}

template class Connection<PlainStream>;

}  // namespace cairn::serving
