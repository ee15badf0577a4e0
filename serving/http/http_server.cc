#include "serving/http/http_server.h"

#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

#include "serving/http/http_error.h"
#include "serving/http/http_loop.h"
#include "serving/http/listener.h"

namespace cairn::serving {

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

HttpReply::~HttpReply() {
  if (!target_) return;
  try {
    send(error_response(500,
                        "the request was given up without an answer: this is a defect of the "
                        "server, and its log may say more"));
  } catch (const std::exception&) {
    // There is no memory for it. The client waits until its own timeout.
  }
}

void HttpReply::send(HttpResponse response) {
  const auto target = std::move(target_);
  if (target) target->send(std::move(response));
}

struct HttpServer::State {
  std::shared_ptr<HttpLoop> loop;
  Listener listener;
  std::thread thread;

  State(HttpOptions options, HttpHandler handler)
      : loop(std::make_shared<HttpLoop>(options, std::move(handler))), listener(loop) {}
};

HttpServer::HttpServer(HttpOptions options, HttpHandler handler) {
  raise_open_files_limit();
  state_ = std::make_unique<State>(std::move(options), std::move(handler));
  state_->listener.start();
  state_->thread = std::thread([loop = state_->loop] { loop->run(); });
}

HttpServer::~HttpServer() { stop(Duration::zero()); }

std::uint16_t HttpServer::port() const { return state_->listener.port(); }

HttpCounts HttpServer::counts() const {
  const LoopCounters& counters = state_->loop->counters();
  return {counters.accepted, counters.open, counters.cut_off, counters.refused};
}

void HttpServer::stop(Duration drain) {
  if (!state_->thread.joinable()) return;
  boost::asio::post(state_->loop->context(), [state = state_.get(), drain] {
    state->listener.stop();
    state->loop->stop(drain);
  });
  state_->thread.join();
}

}  // namespace cairn::serving
