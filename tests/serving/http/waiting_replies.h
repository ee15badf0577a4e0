// WaitingReplies: a handler that keeps its requests until the test answers them.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "serving/http/http_server.h"

namespace cairn::serving {

class WaitingReplies {
 public:
  HttpHandler handler() {
    return [this](HttpRequest request, HttpReply reply) {
      std::lock_guard hold(mutex_);
      requests_.emplace_back(std::move(request), std::move(reply));
      changed_.notify_all();
    };
  }
  std::pair<HttpRequest, HttpReply> next() {
    std::unique_lock hold(mutex_);
    if (!changed_.wait_for(hold, std::chrono::seconds(60), [this] { return !requests_.empty(); }))
      throw std::runtime_error("no request came");
    auto front = std::move(requests_.front());
    requests_.pop_front();
    return front;
  }

 private:
  std::mutex mutex_;  // guards requests_
  std::condition_variable changed_;
  std::deque<std::pair<HttpRequest, HttpReply>> requests_;
};

}  // namespace cairn::serving
