#include "serving/http/http_client.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <string_view>

#include "core/base/error.h"

namespace cairn::serving {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

// The steps of one exchange, each of which begins the next.
class Exchange {
 public:
  Exchange(asio::io_context& loop, const HttpAsk& ask) : ask_(ask), stream_(loop) {
    request_.method_string(ask.method);
    request_.target(ask.target);
    request_.version(11);
    request_.set(http::field::host, ask.address);
    request_.set(http::field::connection, "close");
    if (!ask.token.empty()) request_.set(http::field::authorization, "Bearer " + ask.token);
    for (const auto& [name, value] : ask.headers) request_.set(name, value);
    request_.body() = ask.body;
    request_.prepare_payload();
    stream_.expires_after(ask.timeout);
  }

  void begin(const asio::ip::tcp::resolver::results_type& where) {
    stream_.async_connect(where, [this](beast::error_code error, const auto&) {
      if (ended(error)) return;
      http::async_write(stream_, request_, [this](beast::error_code failed, std::size_t) {
        if (!ended(failed)) read();
      });
    });
  }
  HttpAnswer answer() {
    if (error_ == beast::error::timeout)
      throw DeadlineExceededError(
          str(ask_.address, " gave no answer within ",
              std::chrono::duration_cast<std::chrono::milliseconds>(ask_.timeout).count(), " ms"));
    if (error_)
      throw UnavailableError(str("no answer from ", ask_.address, ": ", error_.message(),
                                 "; is `cairn serve` running there?"));
    HttpAnswer answer{.status = answer_.result_int()};
    if (const auto step = answer_.find("x-cairn-step"); step != answer_.end()) {
      const std::string_view text(step->value().data(), step->value().size());
      std::from_chars(text.data(), text.data() + text.size(), answer.step);
    }
    answer.body = std::move(answer_.body());
    return answer;
  }

 private:
  void read() {
    http::async_read(stream_, buffer_, answer_,
                     [this](beast::error_code error, std::size_t) { ended(error); });
  }
  bool ended(beast::error_code error) {
    error_ = error;
    return static_cast<bool>(error);
  }

  const HttpAsk& ask_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> answer_;
  beast::error_code error_;
};

}  // namespace

HttpAnswer ask_http(const HttpAsk& ask) {
  const auto colon = ask.address.rfind(':');
  if (colon == std::string::npos || colon + 1 == ask.address.size())
    throw InvalidArgumentError(
        str("\"", ask.address, "\" is no address: write HOST:PORT, such as 127.0.0.1:8501"));
  asio::io_context loop;
  beast::error_code error;
  asio::ip::tcp::resolver resolver(loop);
  const auto where =
      resolver.resolve(ask.address.substr(0, colon), ask.address.substr(colon + 1), error);
  if (error)
    throw UnavailableError(str("the address ", ask.address, " leads nowhere: ", error.message()));
  Exchange exchange(loop, ask);
  exchange.begin(where);
  loop.run();
  return exchange.answer();
}

}  // namespace cairn::serving
