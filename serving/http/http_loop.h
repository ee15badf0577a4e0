// HttpLoop: the one thread of an HttpServer, with all that its connections share.
//
// Timeouts are counted in ticks of one timer. A tick looks at every connection, which costs some
// nanoseconds for each; a timer for every operation would cost more than the operation.
//
// A connection holds its loop, so that a reply which outlives the server finds an io_context that
// still exists, though it no longer runs.
//   Thread  the loop's own, except for post(), send() and the counters.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "serving/http/mailbox.h"
#include "serving/http/request_reader.h"

namespace cairn::serving {

struct LoopCounters {
  std::atomic<std::uint64_t> accepted{0}, open{0}, cut_off{0}, refused{0};
};

class HttpLoop {
 public:
  HttpLoop(const HttpOptions& options, HttpHandler handler);

  boost::asio::io_context& context() { return context_; }
  // Runs until nothing is left to wait for: after stop().
  void run();
  bool is_own_thread() const { return std::this_thread::get_id() == thread_; }

  void add(std::shared_ptr<HttpConnection> connection);
  void remove(HttpConnection& connection);
  std::size_t size() const { return connections_.size(); }
  // Called after a connection has gone, and at each tick.
  void on_room(std::function<void()> call) { on_room_ = std::move(call); }

  // Gives `response` to the connection on the loop's thread.
  //   Thread  any.
  void send(std::shared_ptr<HttpConnection> connection, HttpResponse response);
  // The handler has been called: after_requests is due.
  void handled();
  // Gives letters that RepliesTogether has kept to the loop.
  //   Thread  any.
  void send(std::vector<Mailbox::Letter> letters);
  // Ends all connections, and closes those that are left after `drain`.
  void stop(Duration drain);

  // A connection's large buffers have grown, or shrunk, to `after` bytes. False: all connections
  // together have more than they may, and this one has just taken more.
  bool hold(std::size_t before, std::size_t after);

  // Shared by all connections, none of which keeps bytes in it after its turn.
  std::vector<char>& scratch() { return scratch_; }
  const ReadLimits& limits() const { return limits_; }
  const HttpHandler& handler() const { return handler_; }
  const HttpOptions& options() const { return options_; }
  std::string_view date() const { return date_; }
  std::uint32_t now() const { return now_; }  // in ticks
  std::uint32_t ticks(Duration duration) const;
  // Between `duration` and one and a half times that, so that connections which rest do not all
  // come back at once.
  Duration spread(Duration duration);
  LoopCounters& counters() { return counters_; }

 private:
  void run_context();
  void wait_for_tick();
  void tick();
  void read_mail();
  void end_if_empty();

  const HttpOptions options_;
  const Duration interval_;
  const ReadLimits limits_;
  HttpHandler handler_;
  boost::asio::io_context context_{1};
  boost::asio::steady_timer timer_{context_}, drain_{context_};
  Mailbox mailbox_;
  std::vector<Mailbox::Letter> letters_;
  std::vector<std::shared_ptr<HttpConnection>> connections_;
  std::function<void()> on_room_;
  std::vector<char> scratch_;
  std::string date_;
  LoopCounters counters_;
  std::size_t held_ = 0;  // bytes in large buffers of connections
  std::thread::id thread_;
  std::uint32_t now_ = 0;
  std::uint32_t spread_ = 0;
  bool stopping_ = false;
  bool after_requests_due_ = false;
};

}  // namespace cairn::serving
