#include "serving/http/listener.h"

#include <sys/resource.h>

#include <utility>

#include "core/base/error.h"
#include "serving/http/connection.h"

namespace cairn::serving {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// As many are accepted in one turn, so that those that are connected have theirs.
constexpr int kAcceptedPerTurn = 64;

asio::ip::address address_of(const HttpOptions& options) {
  boost::system::error_code error;
  const auto address =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error)
    throw InvalidArgumentError(str("cannot listen at \"", options.host,
                                   "\": it is no IP address; give one, such as 127.0.0.1"));
  if (!address.is_loopback() && options.token.empty())
    throw InvalidArgumentError(
        str("listening at ", options.host,
            " would answer anyone on the network: give --token-file, or listen at 127.0.0.1"));
  return address;
}

void check(const boost::system::error_code& error, const HttpOptions& options) {
  if (!error) return;
  throw UnavailableError(str("cannot listen at ", options.host, " port ", options.port, ": ",
                             error.message(), "; choose another port, or 0 for any"));
}

std::string remote_of(const PlainStream::Socket& socket, const HttpOptions& options) {
  if (!options.access_log) return {};
  boost::system::error_code error;
  const auto remote = socket.remote_endpoint(error);
  return error ? "?" : remote.address().to_string();
}

}  // namespace

void raise_open_files_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // if that is refused, fewer connections are accepted
}

Listener::Listener(std::shared_ptr<HttpLoop> loop)
    : loop_(std::move(loop)), acceptor_(loop_->context()) {
  listen();
}

void Listener::listen() {
  const HttpOptions& options = loop_->options();
  const tcp::endpoint at(address_of(options), options.port);
  boost::system::error_code error;
  acceptor_.open(at.protocol(), error);
  check(error, options);
  acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  check(error, options);
  acceptor_.bind(at, error);
  check(error, options);
  acceptor_.listen(asio::socket_base::max_listen_connections, error);
  check(error, options);
  acceptor_.non_blocking(true);
  port_ = acceptor_.local_endpoint().port();
}

void Listener::start() {
  loop_->on_room([this] { resume(); });
  wait();
}

void Listener::stop() {
  while (acceptor_.is_open() && accept_one()) {
  }
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

void Listener::resume() {
  if (!waiting_ && acceptor_.is_open()) wait();
}

void Listener::wait() {
  waiting_ = true;
  acceptor_.async_wait(tcp::acceptor::wait_read, [this](boost::system::error_code error) {
    waiting_ = false;
    if (!error && acceptor_.is_open()) accept_all();
  });
}

void Listener::accept_all() {
  for (int i = 0; i < kAcceptedPerTurn; ++i) {
    if (accept_one()) continue;
    return;
  }
  wait();
}

bool Listener::accept_one() {
  if (loop_->size() >= loop_->options().connections_max) return false;  // on_room() goes on
  PlainStream::Socket socket(loop_->context());
  boost::system::error_code error;
  acceptor_.accept(socket, error);
  if (error == asio::error::would_block || error == asio::error::connection_aborted) {
    resume();
    return false;
  }
  if (error) return false;  // no file or memory is left: the next tick tries again
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(tcp::no_delay(true), ignored);
  std::string remote = remote_of(socket, loop_->options());
  auto connection = std::make_shared<Connection<PlainStream>>(loop_, PlainStream(std::move(socket)),
                                                              std::move(remote));
  loop_->add(connection);
  connection->start();
  return true;
}

}  // namespace cairn::serving
