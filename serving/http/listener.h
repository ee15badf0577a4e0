// Listener: the listening socket of an HttpServer.
//
// It takes connections until the limit, or the process's limit on open files, is reached. Then it
// waits for one to close (or, because files of others count too, for the next tick): it does not
// poll a socket that it cannot accept from.
//   Thread  the loop's, except for the constructor and port().
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>

#include "serving/http/http_loop.h"
#include "serving/http/plain_stream.h"

namespace cairn::serving {

class Listener {
 public:
  //   Errors  as HttpServer's constructor.
  explicit Listener(std::shared_ptr<HttpLoop> loop);
  std::uint16_t port() const { return port_; }
  void start();  // accepts
  void stop();   // what has connected already is still accepted

 private:
  void listen();
  void wait();
  void accept_all();
  bool accept_one();
  void resume();

  const std::shared_ptr<HttpLoop> loop_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  bool waiting_ = false;  // for a client
};

// Raises the soft limit on open files to the hard one.
void raise_open_files_limit();

}  // namespace cairn::serving
