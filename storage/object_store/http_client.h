// HTTP by libcurl, which is included nowhere else.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"

namespace cairn::storage {

struct HttpRequest {
  std::string method, url;
  std::vector<std::string> headers = {};  // "name: value"
  std::string_view body = {};             // outlives the call
  std::uint64_t answer_bytes_max = 0;     // a longer answer is a failure
};
struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};
  // Why there is no answer; empty: there is one. Whether the request took effect is then not known.
  std::string trouble = {};
};

struct HttpLimits {
  Duration connect = std::chrono::seconds(10);
  Duration stall = std::chrono::seconds(30);  // without a byte in either direction
  Duration whole = std::chrono::minutes(5);
};

// Connections are kept and used again.
//   Thread  any; each call has a connection of its own.
class HttpClient {
 public:
  explicit HttpClient(HttpLimits limits);
  ~HttpClient();
  HttpAnswer send(const HttpRequest& request);

 private:
  struct Handles;
  HttpLimits limits_;
  std::unique_ptr<Handles> handles_;
};

}  // namespace cairn::storage
