// RawClient: a client that sends exactly the bytes it is given, for tests of the HTTP server.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "serving/http/http_server.h"

namespace cairn::serving {

struct RawResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class RawClient {
 public:
  // Connects to this port of 127.0.0.1. `receive_buffer`: of the kernel's, in bytes; 0: its own.
  explicit RawClient(std::uint16_t port, int receive_buffer = 0);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient& operator=(RawClient&&) = delete;

  // Sends all of it. False: the server has closed the connection.
  bool send(std::string_view bytes);
  void end();    // sends no more, but still reads
  void reset();  // closes at once, by a reset

  // The next response. `head`: it answers a HEAD request and has no body. Status 0: the connection
  // ended before it was whole.
  RawResponse receive(bool head = false);
  RawResponse ask(std::string_view bytes) {
    send(bytes);
    return receive();
  }
  // As many bytes of what comes next; fewer if the connection ends.
  std::string receive_bytes(std::size_t bytes);
  std::string receive_to_end();
  bool is_ended() { return receive_to_end().empty(); }

 private:
  bool fill();  // reads more into buffer_; false at the end of the connection

  int socket_ = -1;
  std::string buffer_;
};

std::string get(std::string_view target, std::string_view headers = "");
std::string post(std::string_view target, std::string_view body, std::string_view headers = "");

// Whether `condition` comes true within a minute.
bool eventually(const std::function<bool()>& condition);

// A server whose handler answers with the method, the target and the body that it got.
void echo(HttpRequest request, HttpReply reply);

}  // namespace cairn::serving
