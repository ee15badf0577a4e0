// cairn-bench-fixed-http: one fixed answer over HTTP, by Beast as its documentation writes it (the
// yardstick of the serving benchmarks) or, with --ours, by HttpServer. With --elsewhere a second
// thread answers, as in a server that computes.
//
//   taskset -c 0 cairn-bench-fixed-http --port 8501 &
//   taskset -c 1 wrk -t1 -c32 -d5 --latency http://127.0.0.1:8501/
//
// Prints its port, then serves until standard input ends.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <condition_variable>
#include <cstdint>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/program.h"
#include "serving/http/http_server.h"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using cairn::serving::HttpReply;
using cairn::serving::HttpRequest;
using cairn::serving::HttpServer;

// An answer of the size that a prediction has.
constexpr const char* kBody = "{\"predictions\": [[0.123456789]]}";

// beast/example/http/server/async, without its files and timeouts.
class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket socket) : stream_(std::move(socket)) {}

  void read() {
    request_ = {};
    http::async_read(stream_, buffer_, request_,
                     beast::bind_front_handler(&Session::on_read, shared_from_this()));
  }

 private:
  void on_read(beast::error_code error, std::size_t) {
    if (error) return;
    response_ = {http::status::ok, request_.version()};
    response_.set(http::field::content_type, "application/json");
    response_.keep_alive(request_.keep_alive());
    response_.body() = kBody;
    response_.prepare_payload();
    http::async_write(stream_, response_,
                      beast::bind_front_handler(&Session::on_write, shared_from_this()));
  }
  void on_write(beast::error_code error, std::size_t) {
    if (!error) read();
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
};

void accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](beast::error_code error, tcp::socket socket) {
    if (!error) {
      socket.set_option(tcp::no_delay(true));
      std::make_shared<Session>(std::move(socket))->read();
    }
    accept(acceptor);
  });
}

void wait_for_end_of_input() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

void serve_by_beast(std::uint16_t port) {
  asio::io_context context(1);
  tcp::acceptor acceptor(context, {asio::ip::make_address("127.0.0.1"), port});
  accept(acceptor);
  std::cout << acceptor.local_endpoint().port() << std::endl;
  std::thread waiting([&context] {
    wait_for_end_of_input();
    context.stop();
  });
  context.run();
  waiting.join();
}

// Answers all requests that wait, as a computing thread does.
class Elsewhere {
 public:
  Elsewhere() : thread_([this] { run(); }) {}
  ~Elsewhere() {
    {
      std::lock_guard hold(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void add(HttpReply reply) {
    std::lock_guard hold(mutex_);
    replies_.push_back(std::move(reply));
    if (replies_.size() == 1) changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock hold(mutex_);
    while (!ended_) {
      changed_.wait(hold, [this] { return ended_ || !replies_.empty(); });
      auto taken = std::exchange(replies_, {});
      hold.unlock();
      for (auto& reply : taken) reply.send({.body = kBody});
      taken.clear();
      hold.lock();
    }
  }

  std::mutex mutex_;  // guards the replies and the flag
  std::condition_variable changed_;
  std::vector<HttpReply> replies_;
  bool ended_ = false;
  std::thread thread_;
};

void serve_by_us(std::uint16_t port, bool elsewhere) {
  cairn::serving::HttpOptions options;
  options.port = port;
  Elsewhere thread;
  HttpServer server(options, [&](HttpRequest, HttpReply reply) {
    if (elsewhere) return thread.add(std::move(reply));
    reply.send({.body = kBody});
  });
  std::cout << server.port() << std::endl;
  wait_for_end_of_input();
}

}  // namespace

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-fixed-http", [&] {
    CLI::App app("One fixed answer over HTTP, for wrk");
    std::uint16_t port = 0;
    bool ours = false, elsewhere = false;
    app.add_option("--port", port, "0: any that is free");
    app.add_flag("--ours", ours, "HttpServer instead of Beast");
    app.add_flag("--elsewhere", elsewhere, "with --ours: answers from a second thread");
    CLI11_PARSE(app, argc, argv);
    if (ours) {
      serve_by_us(port, elsewhere);
    } else {
      serve_by_beast(port);
    }
    return 0;
  });
}
