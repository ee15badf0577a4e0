#include "tests/chaos/link.h"

#include <array>
#include <boost/asio.hpp>
#include <list>
#include <thread>

namespace cairn::chaos {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

asio::ip::address here() { return asio::ip::make_address("127.0.0.1"); }

}  // namespace

class Link::Network {
 public:
  explicit Network(std::uint16_t upstream) : upstream_(here(), upstream) {
    accept();
    thread_ = std::thread([this] { context_.run(); });
  }
  ~Network() {
    context_.stop();
    thread_.join();
  }
  std::uint16_t port() const { return port_; }
  void cut() {
    asio::post(context_, [this] {
      for (auto& weak : pairs_)
        if (auto pair = weak.lock()) close(*pair);
      pairs_.clear();
    });
  }
  void set(bool towards_upstream_stopped, bool from_upstream_stopped) {
    asio::post(context_, [this, towards_upstream_stopped, from_upstream_stopped] {
      stopped_ = {towards_upstream_stopped, from_upstream_stopped};
      auto waiting = std::move(waiting_);
      waiting_.clear();
      for (auto& go : waiting) go();
    });
  }

 private:
  struct Pair {
    explicit Pair(asio::io_context& context) : ends{tcp::socket(context), tcp::socket(context)} {}
    std::array<tcp::socket, 2> ends;  // who connected, upstream
    std::array<std::array<char, 64 << 10>, 2> buffers;
  };

  static void close(Pair& pair) {
    error_code ignored;
    for (auto& end : pair.ends) end.close(ignored);
  }
  void accept() {
    auto pair = std::make_shared<Pair>(context_);
    acceptor_.async_accept(pair->ends[0], [this, pair](error_code error) {
      if (!error) connect(pair);
      accept();
    });
  }
  void connect(std::shared_ptr<Pair> pair) {
    pair->ends[1].async_connect(upstream_, [this, pair](error_code error) {
      if (error) return close(*pair);
      error_code ignored;
      for (auto& end : pair->ends) end.set_option(tcp::no_delay(true), ignored);
      pairs_.push_back(pair);
      pass_on(pair, 0);
      pass_on(pair, 1);
    });
  }
  // From end `from` to the other one.
  void pass_on(std::shared_ptr<Pair> pair, std::size_t from) {
    pair->ends[from].async_read_some(asio::buffer(pair->buffers[from]),
                                     [this, pair, from](error_code error, std::size_t size) {
                                       if (error) return close(*pair);
                                       deliver(pair, from, size);
                                     });
  }
  void deliver(std::shared_ptr<Pair> pair, std::size_t from, std::size_t size) {
    if (stopped_[from]) {
      waiting_.push_back([this, pair, from, size] { deliver(pair, from, size); });
      return;
    }
    asio::async_write(pair->ends[1 - from], asio::buffer(pair->buffers[from].data(), size),
                      [this, pair, from](error_code error, std::size_t) {
                        if (error) return close(*pair);
                        pass_on(pair, from);
                      });
  }

  asio::io_context context_;
  tcp::acceptor acceptor_{context_, tcp::endpoint(here(), 0)};
  const std::uint16_t port_ = acceptor_.local_endpoint().port();
  const tcp::endpoint upstream_;
  std::array<bool, 2> stopped_{};
  std::list<std::weak_ptr<Pair>> pairs_;
  std::list<std::function<void()>> waiting_;
  std::thread thread_;
};

Link::Link(std::uint16_t upstream) : network_(std::make_unique<Network>(upstream)) {}
Link::~Link() = default;
std::string Link::address() const { return "127.0.0.1:" + std::to_string(network_->port()); }
void Link::cut() { network_->cut(); }
void Link::partition(bool towards_upstream, bool from_upstream) {
  network_->set(towards_upstream, from_upstream);
}
void Link::heal() { network_->set(false, false); }

}  // namespace cairn::chaos
