// HttpConnection: a connection as the server's loop knows it, whatever its stream.
//   Thread  the loop's, except for send() of Target.
#pragma once
#include <cstddef>

#include "serving/http/http_server.h"

namespace cairn::serving {

class HttpConnection : public HttpReply::Target {
 public:
  // The answer to the request that is with the handler.
  virtual void deliver(HttpResponse response) = 0;
  // Called at each tick of the loop: looks whether a timeout has passed.
  virtual void tick() = 0;
  // The server stops: closes if no request is under way, and otherwise after that one.
  virtual void end() = 0;
  virtual void close() = 0;

  std::size_t place = 0;  // its index among the loop's connections
};

}  // namespace cairn::serving
