#include "serving/http/http_loop.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "serving/http/response_text.h"

namespace cairn::serving {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kScratchBytes = 128 << 10;

// A second, or an eighth of a timeout that is shorter than eight.
Duration tick_interval(const HttpOptions& options) {
  const Duration shortest =
      std::min({options.progress_timeout, options.transfer_timeout, options.idle_timeout});
  return std::clamp<Duration>(shortest / 8, milliseconds(1), seconds(1));
}

// Responses that RepliesTogether keeps on this thread.
struct Kept {
  HttpLoop* loop;  // which the letter's connection holds
  Mailbox::Letter letter;
};
thread_local int keeping = 0;
thread_local std::vector<Kept> kept;

}  // namespace

RepliesTogether::RepliesTogether() { ++keeping; }

RepliesTogether::~RepliesTogether() {
  if (--keeping > 0) return;
  while (!kept.empty()) {
    HttpLoop* const loop = kept.front().loop;
    std::vector<Mailbox::Letter> letters;
    for (Kept& each : kept)
      if (each.loop == loop) letters.push_back(std::move(each.letter));
    std::erase_if(kept, [loop](const Kept& each) { return each.loop == loop; });
    loop->send(std::move(letters));
  }
}

HttpLoop::HttpLoop(const HttpOptions& options, HttpHandler handler)
    : options_(options),
      interval_(tick_interval(options)),
      limits_{options.header_max, options.body_max, options.token},
      handler_(std::move(handler)),
      scratch_(kScratchBytes),
      date_(http_date(system_clock().wall_microseconds())) {}

void HttpLoop::run() {
  thread_ = std::this_thread::get_id();
  wait_for_tick();
  run_context();
  mailbox_.close();
  read_mail();  // frees what came last; its connections are closed
  handler_ = nullptr;
}

// Connections guard their own work. An exception that still comes here, where there is no memory
// for a new one, must not end the server.
void HttpLoop::run_context() {
  for (;;) {
    try {
      context_.run();
      return;
    } catch (const std::exception&) {
    }
  }
}

void HttpLoop::add(std::shared_ptr<HttpConnection> connection) {
  connection->place = connections_.size();
  connections_.push_back(std::move(connection));
  counters_.accepted.fetch_add(1, std::memory_order_relaxed);
  counters_.open.fetch_add(1, std::memory_order_relaxed);
}

void HttpLoop::remove(HttpConnection& connection) {
  const std::size_t place = connection.place;
  connections_.back()->place = place;
  connections_[place].swap(connections_.back());
  connections_.pop_back();
  counters_.open.fetch_sub(1, std::memory_order_relaxed);
  if (stopping_) {
    end_if_empty();
  } else if (on_room_) {
    on_room_();
  }
}

void HttpLoop::send(std::shared_ptr<HttpConnection> connection, HttpResponse response) {
  if (keeping > 0) return kept.push_back({this, {std::move(connection), std::move(response)}});
  if (!mailbox_.add({std::move(connection), std::move(response)})) return;
  // If the loop has ended meanwhile, run() finds the letter, and this call dies with the context.
  boost::asio::post(context_, [this] { read_mail(); });
}

void HttpLoop::send(std::vector<Mailbox::Letter> letters) {
  // The letters' connections hold the loop; once they are given away, nothing of this thread does.
  const std::shared_ptr<HttpConnection> holder = letters.front().to;
  if (mailbox_.add(std::move(letters))) boost::asio::post(context_, [this] { read_mail(); });
}

// The posted call runs after all events that are queued in the loop already.
void HttpLoop::handled() {
  if (!options_.after_requests || std::exchange(after_requests_due_, true)) return;
  boost::asio::post(context_, [this] {
    after_requests_due_ = false;
    options_.after_requests();
  });
}

void HttpLoop::read_mail() {
  mailbox_.take(letters_);
  for (auto& letter : letters_) letter.to->deliver(std::move(letter.response));
  letters_.clear();
}

bool HttpLoop::hold(std::size_t before, std::size_t after) {
  held_ += after - before;
  return after <= before || held_ <= options_.buffered_max;
}

std::uint32_t HttpLoop::ticks(Duration duration) const {
  // One more, because the first of them is not whole.
  return static_cast<std::uint32_t>(duration / interval_) + 1;
}

// The values are the fractions of multiples of the golden ratio: those that follow each other lie
// far apart.
Duration HttpLoop::spread(Duration duration) {
  constexpr std::uint32_t kGolden = 0x9e3779b9;  // of 2^32
  spread_ += kGolden;
  return duration + duration / 512 * (spread_ >> 24);
}

void HttpLoop::wait_for_tick() {
  timer_.expires_after(interval_);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error || (stopping_ && connections_.empty())) return;
    tick();
    wait_for_tick();
  });
}

void HttpLoop::tick() {
  ++now_;
  date_ = http_date(system_clock().wall_microseconds());
  // From the back: remove() puts the last one, which has had its turn, into the gap.
  for (std::size_t i = connections_.size(); i-- > 0;) {
    if (i >= connections_.size()) continue;
    const auto connection = connections_[i];
    connection->tick();
  }
  if (!stopping_ && on_room_) on_room_();
}

void HttpLoop::stop(Duration drain) {
  stopping_ = true;
  const auto all = connections_;
  for (const auto& connection : all) connection->end();
  end_if_empty();
  if (connections_.empty()) return;
  drain_.expires_after(drain);
  drain_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    const auto left = connections_;
    for (const auto& connection : left) connection->close();
  });
}

void HttpLoop::end_if_empty() {
  if (!connections_.empty()) return;
  timer_.cancel();
  drain_.cancel();
}

}  // namespace cairn::serving
