#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "rpc/loop/asio_reactor.h"
#include "rpc/net/asio_stream.h"
#include "rpc/net/network.h"
#include "rpc/net/socket_address.h"
#include "rpc/net/socket_options.h"

namespace cairn::rpc {
namespace {

using Descriptor = asio::posix::stream_descriptor;

std::string system_text(int error) { return std::system_category().message(error); }

// A file descriptor whose readiness can be awaited, one wait at a time.
class Waitable {
 public:
  Waitable(Reactor& reactor, int fd)
      : descriptor_(std::make_shared<Descriptor>(require_asio(reactor, "sockets").io(), fd)) {}
  ~Waitable() {
    boost::system::error_code ignored;
    if (descriptor_) descriptor_->close(ignored);
  }
  int fd() const { return descriptor_->native_handle(); }
  int release() { return descriptor_->release(); }
  kj::Promise<void> ready(Descriptor::wait_type type) {
    return kj::newAdaptedPromise<void, Wait>(descriptor_, type);
  }

 private:
  // A wait that is dropped is cancelled, but Asio may run its handler afterwards. The handler
  // therefore shares `live_`, and touches the fulfiller only while it is set.
  class Wait {
   public:
    Wait(kj::PromiseFulfiller<void>& fulfiller, std::shared_ptr<Descriptor> descriptor,
         Descriptor::wait_type type)
        : descriptor_(std::move(descriptor)) {
      descriptor_->async_wait(type, [&fulfiller, live = live_](boost::system::error_code error) {
        if (!*live) return;
        *live = false;
        if (!error)
          fulfiller.fulfill();
        else
          fulfiller.reject(to_kj(Code::kUnavailable, error.message()));
      });
    }
    ~Wait() {
      if (!*live_) return;
      *live_ = false;
      boost::system::error_code ignored;
      descriptor_->cancel(ignored);
    }

   private:
    std::shared_ptr<Descriptor> descriptor_;
    std::shared_ptr<bool> live_ = std::make_shared<bool>(true);
  };
  std::shared_ptr<Descriptor> descriptor_;
};

int open_socket(int family) {
  int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) throw UnavailableError(str("cannot open a socket: ", system_text(errno)));
  tune_socket(fd, family);
  return fd;
}

class SocketListener final : public Listener {
 public:
  explicit SocketListener(Reactor& reactor) : reactor_(reactor) {}
  ~SocketListener() override {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  // Errors  Unavailable: cannot bind.
  SocketAddress open_door(SocketAddress address, const std::string& shown) {
    auto door = std::make_unique<Waitable>(reactor_, open_socket(address.family()));
    // A port whose old connections are still in TIME_WAIT can be listened at again: a ps that was
    // restarted does. Afterwards the system is asked for the address, since port 0 lets it choose.
    int on = 1;
    if (address.family() != AF_UNIX)
      ::setsockopt(door->fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(door->fd(), address.get(), address.size) != 0 ||
        ::listen(door->fd(), SOMAXCONN) != 0) {
      throw UnavailableError(str("cannot listen at ", shown, ": ", system_text(errno)));
    }
    ::getsockname(door->fd(), address.get(), &(address.size = sizeof address.storage));
    doors_.push_back(std::move(door));
    return address;
  }
  void set_address(Address address, bool exposed) {
    address_ = std::move(address);
    exposed_ = exposed;
  }
  void remove_at_end(std::string path) { path_ = std::move(path); }

  kj::Promise<std::unique_ptr<Socket>> accept() override { return accept_next(); }
  const Address& address() const override { return address_; }
  bool exposed() const override { return exposed_; }

 private:
  // All doors are tried before any is waited for; the waits of the doors that stay shut are
  // cancelled.
  Task<std::unique_ptr<Socket>> accept_next() {
    for (;;) {
      for (auto& door : doors_)
        if (auto socket = try_accept(*door)) co_return socket;
      co_await any_ready();
    }
  }
  kj::Promise<void> any_ready() {
    auto any = doors_[0]->ready(Descriptor::wait_read);
    for (std::size_t i = 1; i < doors_.size(); ++i)
      any = any.exclusiveJoin(doors_[i]->ready(Descriptor::wait_read));
    return any;
  }
  std::unique_ptr<Socket> try_accept(Waitable& door) {
    SocketAddress peer;
    peer.size = sizeof peer.storage;
    int fd = ::accept4(door.fd(), peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      tune_socket(fd, peer.family());
      if (peer.family() != AF_UNIX) tune_within_host(fd);
      auto name = peer.family() == AF_UNIX ? str("a Unix socket of ", address_.str())
                                           : to_address(peer).str();
      return make_fd_socket(fd, peer.family(), name);
    }
    // Thrown, so that the caller pauses. Any other error belongs to the stream that was to be
    // accepted (accept(2)), and the next one may be in order.
    bool out_of_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (out_of_room) throw ResourceExhaustedError(str("no more connections: ", system_text(errno)));
    return nullptr;  // no peer there, or gone again
  }

  Reactor& reactor_;
  std::vector<std::unique_ptr<Waitable>> doors_;
  Address address_;
  bool exposed_ = false;
  std::string path_;
};

// A non-blocking connect() is over when the socket becomes writable, and SO_ERROR then says how
// (connect(2)). A Unix socket connects at once or not at all.
Task<std::unique_ptr<Socket>> connect_to(Reactor& reactor, SocketAddress address, std::string shown,
                                         bool shares) {
  Waitable socket(reactor, open_socket(address.family()));
  if (::connect(socket.fd(), address.get(), address.size) != 0) {
    if (errno != EINPROGRESS)
      throw UnavailableError(str("cannot connect to ", shown, ": ", system_text(errno)));
    co_await socket.ready(Descriptor::wait_write);
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0)
      throw UnavailableError(str("cannot connect to ", shown, ": ", system_text(error)));
  }
  if (address.family() != AF_UNIX) tune_within_host(socket.fd());
  co_return make_fd_socket(socket.release(), address.family(), shown, shares);
}

// A Unix connection to the second door of `address`; null: there is none, or another user's process
// holds the name. Abstract names have no permissions, so any process may take one: the kernel names
// the listener (SO_PEERCRED). A listener at a wildcard address has the door of that name.
std::unique_ptr<Socket> try_second_door(const SocketAddress& address, bool shares) {
  for (const auto& host : {numeric_host(address), std::string("*")}) {
    auto name = second_door(host, port_of(address));
    auto door = abstract_address(name);
    int fd = open_socket(AF_UNIX);
    ucred owner{};
    socklen_t size = sizeof owner;
    // at once, or EAGAIN when its backlog is full
    bool open = ::connect(fd, door.get(), door.size) == 0 &&
                ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0 &&
                owner.uid == ::geteuid();
    if (open) return make_fd_socket(fd, AF_UNIX, str("unix:@", name), shares);
    ::close(fd);
  }
  return nullptr;
}

// Looks a name up on a helper thread of the loop; numeric addresses cost nothing.
Task<std::vector<SocketAddress>> resolve(Reactor& reactor, std::string host, std::uint16_t port) {
  auto numeric = numeric_addresses(host, port);
  if (!numeric.empty()) co_return numeric;
  using Resolver = asio::ip::tcp::resolver;
  auto resolver = std::make_shared<Resolver>(require_asio(reactor, "sockets").io());
  auto pair = kj::newPromiseAndFulfiller<std::vector<SocketAddress>>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<std::vector<SocketAddress>>>>(
      kj::mv(pair.fulfiller));
  auto found = [resolver, fulfiller, host](boost::system::error_code error,
                                           Resolver::results_type results) {
    if (error)
      return (*fulfiller)
          ->reject(to_kj(Code::kUnavailable, str("no host \"", host, "\": ", error.message())));
    std::vector<SocketAddress> addresses;
    for (const auto& entry : results) {
      auto endpoint = entry.endpoint();
      SocketAddress address;
      std::memcpy(&address.storage, endpoint.data(), endpoint.size());
      address.size = static_cast<socklen_t>(endpoint.size());
      addresses.push_back(address);
    }
    (*fulfiller)->fulfill(kj::mv(addresses));
  };
  resolver->async_resolve(host, std::to_string(port), kj::mv(found));
  co_return co_await kj::mv(pair.promise);
}

class SocketNetwork final : public Network {
 public:
  explicit SocketNetwork(Transport transport) : transport_(transport) {}

  std::unique_ptr<Listener> listen(Reactor& reactor, const Address& address) override {
    if (address.scheme == Address::Scheme::kUnix) return listen_unix(reactor, address);
    if (address.scheme != Address::Scheme::kTcp)
      throw InvalidArgumentError(str(address.str(), " is no socket address"));
    auto listener = std::make_unique<SocketListener>(reactor);
    auto bound =
        listener->open_door(lookup_addresses(address.host, address.port).front(), address.str());
    listener->set_address(to_address(bound), !is_loopback(bound));
    if (transport_ != Transport::kTcp) open_second_door(*listener, bound);
    return listener;
  }

  kj::Promise<std::unique_ptr<Socket>> dial(Reactor& reactor, const Address& address) override {
    if (address.scheme == Address::Scheme::kUnix)
      return connect_to(reactor, unix_address(address.host), address.str(),
                        transport_ == Transport::kAuto);
    if (address.scheme != Address::Scheme::kTcp)
      throw InvalidArgumentError(str(address.str(), " is no socket address"));
    return dial_tcp(reactor, address, transport_);
  }

 private:
  std::unique_ptr<Listener> listen_unix(Reactor& reactor, const Address& address) {
    auto name = unix_address(address.host);
    remove_stale(name, address.host);
    auto listener = std::make_unique<SocketListener>(reactor);
    listener->open_door(name, address.str());
    listener->set_address(address, false);
    listener->remove_at_end(address.host);
    return listener;
  }
  // Removes a socket file that a killed process has left: no process listens on it.
  static void remove_stale(const SocketAddress& name, const std::string& path) {
    int fd = open_socket(AF_UNIX);
    bool refused = ::connect(fd, name.get(), name.size) != 0 && errno == ECONNREFUSED;
    ::close(fd);
    if (refused) ::unlink(path.c_str());
  }
  void open_second_door(SocketListener& listener, const SocketAddress& bound) const {
    auto name = second_door(numeric_host(bound), port_of(bound));
    try {
      listener.open_door(abstract_address(name), str("unix:@", name));
    } catch (const UnavailableError&) {
      if (transport_ == Transport::kUnix) throw;  // otherwise TCP does
    }
  }

  // The addresses of a name are tried in the resolver's order; the first that answers is taken. On
  // this host the second door goes before TCP.
  static Task<std::unique_ptr<Socket>> dial_tcp(Reactor& reactor, Address address,
                                                Transport transport) {
    auto candidates = co_await resolve(reactor, address.host, address.port);
    std::string failure = "no address";
    for (auto& candidate : candidates) {
      bool own = transport != Transport::kTcp && is_own(candidate);
      if (own) {
        if (auto socket = try_second_door(candidate, transport == Transport::kAuto))
          co_return socket;
      }
      if (transport == Transport::kUnix) {
        if (!own)
          throw FailedPreconditionError(
              str(address.str(), " is another host; --transport unix reaches only this one"));
        failure = str("no Unix socket is offered at ", address.str());
        continue;
      }
      try {
        co_return co_await connect_to(reactor, candidate, address.str(), false);
      } catch (const UnavailableError& error) {
        failure = error.what();
      }
    }
    throw UnavailableError(failure);
  }

  Transport transport_;
};

}  // namespace

std::unique_ptr<Network> make_socket_network(Transport transport) {
  return std::make_unique<SocketNetwork>(transport);
}

}  // namespace cairn::rpc
