// HttpServer: HTTP/1.1 on one address, one thread for all connections.
//
//   HttpServer server(options, [](HttpRequest request, HttpReply reply) {
//     reply.send({.status = 200, .body = "{}"});      // now, or later from any thread
//   });
//   server.port() ...
//   server.stop(5s);
//
// Requests of a connection are answered in their order, one at a time: the handler gets the next
// one when the answer before it has been written, and meanwhile nothing more is read. A request
// that cannot be read never reaches the handler; the server answers it with {"error": "..."}:
//
//   400  it is not HTTP/1.1 or HTTP/1.0, or has no Host
//   401  it lacks the token
//   408  no byte of it came for progress_timeout, or not all of it within transfer_timeout
//   411  POST, PUT or PATCH without a length
//   413  its body is larger than body_max
//   417  it expects something other than 100-continue
//   429  the bodies of all connections together are larger than buffered_max
//   431  its header is larger than header_max
//   501  its transfer encoding is unknown
//
// and closes the connection, because where the next request begins is then unknown. The length of a
// body is looked at before memory is taken for it, and memory grows with the bytes that arrive.
//
// For TLS, add a second stream type beside PlainStream (serving/http/plain_stream.h): Connection is
// a template over its stream.
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
  // Names in lower case, in the order in which they were sent. Trailers of a chunked body are
  // dropped.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // The first header of that name, which is in lower case; empty: there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  // Further ones. The server itself writes Content-Type, Content-Length, Date and Connection. Line
  // breaks in a value become spaces.
  std::vector<std::pair<std::string, std::string>> headers = {};
  // The connection's next request is read only after this time. It is for clients that were told to
  // come later.
  Duration rest = {};
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
  // Once. If the client has gone, or the server has stopped, the response is dropped.
  //   Cost  no lock on the server's own thread. From others one mutex, and one wake-up of the
  //         server's thread for all responses that it has not yet seen.
  void send(HttpResponse response);

 private:
  std::shared_ptr<Target> target_;
};

// While one lives, responses that its thread sends are kept; all of them go to the server's thread
// when it ends. A computing thread that answers a batch wakes the server once, after the batch,
// instead of being interrupted by it after the first answer.
//   Thread  the one that makes it; they nest.
class RepliesTogether {
 public:
  RepliesTogether();
  ~RepliesTogether();
  RepliesTogether(const RepliesTogether&) = delete;
  RepliesTogether& operator=(const RepliesTogether&) = delete;
};

// One answered request, for a log. The views are valid during the call only.
struct AccessLine {
  std::string_view remote;          // the client's address
  std::string_view method, target;  // empty if the request could not be read that far
  unsigned status = 0;
  std::size_t bytes_in = 0, bytes_out = 0;  // of the bodies
  std::int64_t microseconds = 0;            // from the request's first byte to the answer's last
};

struct HttpOptions {
  std::string host = "127.0.0.1";                // an address, or "localhost"
  std::uint16_t port = 0;                        // 0: any that is free
  std::size_t body_max = std::size_t{16} << 20;  // larger: 413
  std::size_t header_max = 16 << 10;             // larger: 431
  // Bytes of all connections together that wait: bodies that are being read, pipelined requests,
  // and answers that their clients have not yet taken. Of each buffer the first 16 KiB are free.
  // More: a body is answered with 429, and a client of the other two kinds is cut off.
  std::size_t buffered_max = std::size_t{512} << 20;
  std::size_t connections_max = 20'000;                  // more wait to be accepted
  Duration progress_timeout = std::chrono::seconds(10);  // no byte of a request or answer moved
  Duration transfer_timeout = std::chrono::minutes(2);   // for one whole request, or answer
  Duration idle_timeout = std::chrono::minutes(10);      // between two requests
  std::string token = "";                                // if set: "Authorization: Bearer TOKEN"
  // Called on the server's thread when an answer has been written. Must not block or throw.
  std::function<void(const AccessLine&)> access_log = nullptr;
  // Called on the server's thread when the handler has been called for all requests that had come
  // together. Must not block or throw.
  std::function<void()> after_requests = nullptr;
};

// The connections so far, for metrics.
struct HttpCounts {
  std::uint64_t accepted = 0;
  std::uint64_t open = 0;     // now
  std::uint64_t cut_off = 0;  // closed because a timeout had passed
  std::uint64_t refused = 0;  // requests that the server itself answered with an error
};

using HttpHandler = std::function<void(HttpRequest request, HttpReply reply)>;

class HttpServer {
 public:
  // Listens when it returns. `handler` is called on the server's thread and must not block; if it
  // throws before it has sent, the client gets error_response() of that (http_error.h).
  // Raises the process's soft limit on open files to the hard one.
  //   Errors  Unavailable: the address is in use, or is not this machine's. InvalidArgument: the
  //           host is no address, or it is one other than loopback and there is no token.
  HttpServer(HttpOptions options, HttpHandler handler);
  ~HttpServer();  // stop(0s)
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  HttpCounts counts() const;
  // Accepts no further connection, closes idle ones, lets requests under way end, whose answers
  // carry "Connection: close", and after `drain` closes what is left. Returns when all connections
  // are closed and the thread has ended; a second call returns at once.
  //   Thread  any but the server's own, one at a time.
  void stop(Duration drain);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::serving
