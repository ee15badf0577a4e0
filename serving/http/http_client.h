// One HTTP request of a program's own, for tools: `cairn serve status`.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"

namespace cairn::serving {

struct HttpAsk {
  std::string address = "127.0.0.1:8501";  // HOST:PORT
  std::string method = "GET", target = "/", body = "";
  std::string token = "";  // if set: "Authorization: Bearer TOKEN"
  Duration timeout = std::chrono::seconds(10);
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};
struct HttpAnswer {
  unsigned status = 0;
  std::string body;
  std::int64_t step = 0;  // of the header "x-cairn-step"; 0: there is none
};

// Sends the request, and returns the whole answer, whatever its status.
//   Errors  InvalidArgument: `address` is none. Unavailable: nothing listens there, or it closed
//           the connection. DeadlineExceeded: there was no whole answer in time.
//   Thread  any that may block.
HttpAnswer ask_http(const HttpAsk& ask);

}  // namespace cairn::serving
