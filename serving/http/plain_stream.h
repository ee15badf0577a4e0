// PlainStream: a TCP socket as Connection uses it.
//
// A stream of TLS would have the same members: read_some() and write_some() that never block and
// say would_block, and waits for the socket below it. OpenSSL works in just that way.
//
// Connection waits until there is something to read and only then reads, into memory that all
// connections share, so that an idle connection needs no buffer. The wait costs one epoll_ctl();
// an asynchronous read would cost one recv() that finds nothing.
//   Thread  the loop's.
#pragma once
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <string_view>
#include <utility>

namespace cairn::serving {

class PlainStream {
 public:
  using ErrorCode = boost::system::error_code;
  // With the executor's own type, which saves the type-erased one's calls.
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp,
                                                  boost::asio::io_context::executor_type>;

  // `socket` is connected and does not block.
  explicit PlainStream(Socket socket) : socket_(std::move(socket)) {}

  std::size_t read_some(char* to, std::size_t bytes, ErrorCode& error) {
    return socket_.read_some(boost::asio::buffer(to, bytes), error);
  }
  std::size_t write_some(std::string_view head, std::string_view body, ErrorCode& error) {
    if (body.empty()) return socket_.write_some(boost::asio::buffer(head), error);
    const std::array<boost::asio::const_buffer, 2> both{boost::asio::buffer(head),
                                                        boost::asio::buffer(body)};
    return socket_.write_some(both, error);
  }
  template <typename Handler>
  void wait_readable(Handler handler) {
    socket_.async_wait(Socket::wait_read, std::move(handler));
  }
  template <typename Handler>
  void wait_writable(Handler handler) {
    socket_.async_wait(Socket::wait_write, std::move(handler));
  }
  void shutdown_send() {
    ErrorCode ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
  void close() {
    ErrorCode ignored;
    socket_.close(ignored);
  }

 private:
  Socket socket_;
};

}  // namespace cairn::serving
