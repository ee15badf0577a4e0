// HttpServer: HTTP/1.1 on one address, one thread for all connections.
//
//   HttpServer server(options, [](HttpRequest request, HttpReply reply) {
//     reply.send({.status = 200, .body = "{}"});      // now, or later from any thread
//   });
//   server.address().port ...
//   server.stop(5s);
//
// Requests of a connection are answered in their order, one at a time: the next one is read when
// the answer has been written. A request that cannot be read (its body is larger than body_max, it
// has no length, it is not HTTP) is answered here and never reaches the handler.
//   Source  RFC 9110 and RFC 9112.
//   Thread  any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"

namespace cairn::serving {

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // "/v1/models/adult:predict?raw", as it was sent
  // Names in lower case, in the order in which they were sent.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // The first header of that name, which is in lower case; empty: there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};

// Answers one request. If it is destroyed without send(), the client gets status 500.
//   Thread  any, one at a time.
class HttpReply {
 public:
  class Target {  // the connection
   public:
    virtual ~Target() = default;
    virtual void send(HttpResponse response) = 0;
  };
  explicit HttpReply(std::shared_ptr<Target> target) : target_(std::move(target)) {}
  ~HttpReply();
  HttpReply(HttpReply&&) noexcept = default;
  HttpReply& operator=(HttpReply&&) = delete;
  // Once. If the client has gone, the response is dropped.
  void send(HttpResponse response);

 private:
  std::shared_ptr<Target> target_;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;                                  // 0: any that is free
  std::size_t body_max = std::size_t{16} << 20;            // larger: 413
  std::size_t header_max = 16 << 10;                       // larger: 431
  std::size_t connections_max = 20'000;                    // more wait to be accepted
  Duration progress_timeout = std::chrono::seconds(10);    // no byte of a request or answer moved
  Duration idle_timeout = std::chrono::minutes(10);        // between two requests
  std::string token = "";                                  // if set: "Authorization: Bearer TOKEN"
};

// What connections have come to, for metrics.
struct HttpCounts {
  std::uint64_t accepted = 0, open = 0, cut_off = 0, refused = 0;
};

using HttpHandler = std::function<void(HttpRequest request, HttpReply reply)>;

class HttpServer {
 public:
  // Listens when it returns. `handler` is called on the server's thread and must not block.
  //   Errors  Unavailable: the address is in use. InvalidArgument: it is no address; an address
  //           other than loopback without a token.
  HttpServer(HttpOptions options, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  HttpCounts counts() const;
  // Accepts no further connection, lets requests under way end, and then closes everything; after
  // `drain` it closes what is left.
  void stop(Duration drain);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::serving
