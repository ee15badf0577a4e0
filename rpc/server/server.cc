#include "rpc/server/server.h"

#include <atomic>
#include <map>

#include "core/base/error.h"
#include "rpc/loop/task_group.h"
#include "rpc/net/hello_io.h"

namespace cairn::rpc {
namespace {

constexpr Duration kRetryAccept = std::chrono::milliseconds(100);

// A refusal, as an error that greet() turns into a reply.
[[noreturn]] void refuse(Code code, const std::string& reason) { throw_error(code, reason); }

// One endpoint's connections. Lives and dies on the endpoint's thread, kept by its reactor.
class Ward : public std::enable_shared_from_this<Ward> {
 public:
  Ward(Reactor& reactor, std::shared_ptr<std::atomic<std::size_t>> count)
      : reactor_(reactor), count_(std::move(count)) {}
  ~Ward() {
    watches_.cancel_all();
    *count_ -= connections_.size();
  }

  void adopt(Socket& socket, const PeerInfo& peer, const Endpoint& endpoint,
             const std::string& self, const ConnectionOptions& options) {
    auto connection = std::make_unique<Connection>(
        reactor_, socket.attach(reactor_, options.stream), Side::kAcceptor, peer, self, options);
    // In the same turn of the loop in which RPC began, so that the first call finds the service.
    connection->serve(endpoint.serve(peer, *connection));
    auto id = next_id_++;
    // A connection may not be destroyed by an event of its own, hence the detour through post().
    auto ended = [this, id] {
      reactor_.post([weak = weak_from_this(), id] {
        if (auto ward = weak.lock()) ward->drop(id);
      });
    };
    // KJ keeps an lvalue by reference
    watches_.spawn("watching a connection", connection->on_disconnect().then(kj::mv(ended)));
    connections_.emplace(id, std::move(connection));
  }

 private:
  void drop(std::uint64_t id) { *count_ -= connections_.erase(id); }

  Reactor& reactor_;
  std::shared_ptr<std::atomic<std::size_t>> count_;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  TaskGroup watches_;
};

// How the acceptor's thread reaches a ward; the members behind it belong to the endpoint's thread.
struct Doorway {
  explicit Doorway(Endpoint endpoint)
      : endpoint(std::move(endpoint)), mailbox(this->endpoint.reactor->mailbox()) {}
  const Endpoint endpoint;
  const std::shared_ptr<Mailbox> mailbox;
  bool closed = false;
  std::weak_ptr<Ward> ward;

  void close() {
    closed = true;
    if (auto last = ward.lock()) endpoint.reactor->release(last.get());
  }
};

}  // namespace

struct Acceptor::Impl {
  Impl(Network& network, const Address& address, AcceptorOptions given,
       std::vector<Endpoint> endpoints);

  Task<void> accept_all();
  void welcome(std::unique_ptr<Socket> socket);
  void drop_oldest_stranger();
  Task<void> greet(std::unique_ptr<Socket> socket);
  HelloReply judge(const ReceivedHello& received, Hello& hello);
  void check(const Hello& hello);
  [[noreturn]] void refuse_endpoint(const std::string& sides, const Hello& hello) const;
  std::shared_ptr<Doorway> find(std::uint32_t endpoint) const;
  bool make_further(const Hello& hello);
  void hand_over(std::unique_ptr<Socket> socket, const Hello& hello,
                 std::shared_ptr<SharedMemory> shared);
  void stop();
  template <typename Visit>
  void for_each_doorway(Visit visit) const {
    for (const auto& doorway : doorways) visit(doorway);
    for (const auto& [endpoint, doorway] : further) visit(doorway);
  }
  std::string self() const { return task_name(options.role, options.task); }

  AcceptorOptions options;
  std::vector<std::shared_ptr<Doorway>> doorways;
  std::map<std::uint32_t, std::shared_ptr<Doorway>> further;  // beyond those, by endpoint
  Reactor& reactor;
  std::shared_ptr<std::atomic<std::size_t>> count = std::make_shared<std::atomic<std::size_t>>(0);
  std::unique_ptr<Listener> listener;
  Address address;
  // Being greeted, the oldest first. A silent peer makes room for a later one, since a peer of ours
  // greets at once.
  std::map<std::uint64_t, kj::Own<kj::PromiseFulfiller<void>>> strangers;
  std::uint64_t next_stranger = 0;
  TaskGroup tasks;
};

Acceptor::Impl::Impl(Network& network, const Address& wanted, AcceptorOptions given,
                     std::vector<Endpoint> endpoints)
    : options(std::move(given)),
      reactor(*endpoints.at(0).reactor),
      tasks([this](const std::string& what, const ErrorParts& error) {
        options.log(LogLevel::kWarning, str(what, ": ", describe(error)));
      }) {
  for (auto& endpoint : endpoints)
    doorways.push_back(std::make_shared<Doorway>(std::move(endpoint)));
  listener = network.listen(reactor, wanted);
  address = listener->address();
  if (listener->exposed() && options.token.empty() && !options.insecure) {
    throw FailedPreconditionError(str(
        self(), " will not listen at ", address.str(),
        ", which other hosts can reach, without a token; give --token, or --insecure to allow it"));
  }
  tasks.spawn(str("accepting at ", address.str()), accept_all());
}

// When descriptors run out, the listening socket stays readable and accept() fails at once, over
// and over: the pause keeps the loop free to close some. It is outside the handler, which may not
// co_await.
Task<void> Acceptor::Impl::accept_all() {
  for (;;) {
    std::unique_ptr<Socket> socket;
    std::string failure;
    try {
      socket = co_await listener->accept();
    } catch (const Error& error) {
      failure = error.what();
    }
    if (!socket) {
      options.log(LogLevel::kWarning,
                  str("accepting at ", address.str(), ": ", failure, "; trying again"));
      co_await reactor.sleep(kRetryAccept);
      continue;
    }
    if (strangers.size() >= options.hellos_max) drop_oldest_stranger();
    welcome(std::move(socket));
  }
}

// The hello is awaited beside the next accept(). However that ends (greeted, refused, late or
// dropped for a later stranger), the entry goes with the promise to which its removal is attached.
void Acceptor::Impl::welcome(std::unique_ptr<Socket> socket) {
  auto what = str(self(), " refused a connection from ", socket->peer_address());
  auto id = next_stranger++;
  auto dropped = kj::newPromiseAndFulfiller<void>();
  strangers.emplace(id, kj::mv(dropped.fulfiller));
  auto leave = kj::defer([this, id] { strangers.erase(id); });
  auto greeted =
      reactor.with_deadline(greet(std::move(socket)), options.hello_deadline, "its hello");
  tasks.spawn(what, greeted.exclusiveJoin(kj::mv(dropped.promise)).attach(kj::mv(leave)));
}

void Acceptor::Impl::drop_oldest_stranger() {
  auto drop = kj::mv(strangers.begin()->second);
  strangers.erase(strangers.begin());
  drop->reject(to_kj(
      Code::kUnavailable,
      str(options.hellos_max, " streams had not greeted, and this one was silent for longest")));
}

// Memory is taken only from a peer that was accepted; what another one sent is unmapped with the
// stream.
Task<void> Acceptor::Impl::greet(std::unique_ptr<Socket> socket) {
  auto where = socket->peer_address();
  StreamOptions plain = kPlainStream;
  plain.shared_bytes_max = options.connection.shared_bytes_max;
  auto stream = socket->attach(reactor, plain);
  auto received = co_await receive_hello(*stream);
  Hello hello;
  auto reply = judge(received, hello);
  auto shared = reply.accepted ? stream->take_shared() : nullptr;
  reply.shares = shared != nullptr;
  co_await send_reply(*stream, reply);
  if (!reply.accepted) throw_error(reply.code, reply.reason);  // the log line
  hand_over(stream->detach(), hello, std::move(shared));
}

// The version comes first: only the prefix has a form that holds for all versions.
HelloReply Acceptor::Impl::judge(const ReceivedHello& received, Hello& hello) {
  HelloReply reply;
  reply.role = options.role;
  reply.task = options.task;
  reply.session = options.session;
  reply.incarnation = options.incarnation;
  reply.endpoints = static_cast<std::uint32_t>(doorways.size());
  try {
    if (received.prefix.version != kProtocolVersion) {
      refuse(Code::kFailedPrecondition,
             str(self(), " speaks protocol version ", kProtocolVersion, ", the dialler speaks ",
                 received.prefix.version, ": start both from the same release"));
    }
    hello = decode_hello(received.prefix.version, received.rest);
    check(hello);
    reply.accepted = true;
  } catch (const Error& error) {
    reply.code = error.code();
    reply.reason = error.what();
  }
  return reply;
}

// The token comes first: a peer that does not know it learns nothing of the cluster.
void Acceptor::Impl::check(const Hello& hello) {
  auto sides = str(self(), " refuses ", task_name(hello.role, hello.task), ": ");
  if (!same_secret(hello.token, options.token)) {
    refuse(Code::kPermissionDenied,
           str(sides, "the tokens differ; start every task of a cluster with the same --token"));
  }
  if (hello.cluster != options.cluster) {
    refuse(Code::kFailedPrecondition, str(sides, "it belongs to cluster \"", hello.cluster,
                                          "\", this one to \"", options.cluster, "\""));
  }
  const bool there = find(hello.endpoint) != nullptr;
  if (!there && !options.further) refuse_endpoint(sides, hello);
  if (*count >= options.connections_max) {
    refuse(Code::kUnavailable,
           str(sides, "all ", options.connections_max, " connections are taken"));
  }
  if (options.admit)
    if (auto reason = options.admit(hello)) refuse(Code::kFailedPrecondition, str(sides, *reason));
  // Last, so that a hello which is refused makes nothing.
  if (!there && !make_further(hello)) refuse_endpoint(sides, hello);
}

void Acceptor::Impl::refuse_endpoint(const std::string& sides, const Hello& hello) const {
  refuse(Code::kNotFound,
         str(sides, "it wants endpoint ", hello.endpoint, ", there are ", doorways.size()));
}

// Null: there is none.
std::shared_ptr<Doorway> Acceptor::Impl::find(std::uint32_t endpoint) const {
  if (endpoint < doorways.size()) return doorways[endpoint];
  const auto found = further.find(endpoint);
  return found == further.end() ? nullptr : found->second;
}

bool Acceptor::Impl::make_further(const Hello& hello) {
  auto made = options.further(hello);
  if (!made) return false;
  further.emplace(hello.endpoint, std::make_shared<Doorway>(std::move(*made)));
  return true;
}

// The socket crosses to the endpoint's thread; if that has ended it is closed on the way. The
// connection is counted here, before it crosses, so that the next hello is judged by a number that
// includes it.
void Acceptor::Impl::hand_over(std::unique_ptr<Socket> socket, const Hello& hello,
                               std::shared_ptr<SharedMemory> shared) {
  PeerInfo peer{.role = hello.role,
                .task = hello.task,
                .incarnation = hello.incarnation,
                .session = hello.session,
                .term = hello.term,
                .endpoint = hello.endpoint,
                .endpoints = 0,
                .address = socket->peer_address(),
                .shared = std::move(shared)};
  ++*count;
  const std::shared_ptr<Doorway> doorway = find(hello.endpoint);
  auto adopt = [doorway, peer, count = count, log = options.log, self = self(),
                connection = options.connection,
                socket = std::shared_ptr<Socket>(std::move(socket))] {
    auto ward = doorway->ward.lock();
    if (!ward && !doorway->closed) {
      ward = std::make_shared<Ward>(*doorway->endpoint.reactor, count);
      doorway->ward = ward;
      doorway->endpoint.reactor->keep(ward);
    }
    try {
      if (doorway->closed) throw UnavailableError("the acceptor has stopped");
      ward->adopt(*socket, peer, doorway->endpoint, self, connection);
    } catch (...) {
      --*count;
      log(LogLevel::kWarning, str(self, " could not serve ", peer.name(), ": ",
                                  describe(from_kj(to_kj(std::current_exception())))));
    }
  };
  if (!doorway->mailbox->post(std::move(adopt))) --*count;
}

// Connections end on the threads of their endpoints, behind those that were posted there before.
void Acceptor::Impl::stop() {
  tasks.cancel_all();
  listener.reset();
  for_each_doorway([](const std::shared_ptr<Doorway>& doorway) {
    doorway->mailbox->post([doorway] { doorway->close(); });
  });
}

Acceptor::Acceptor(Network& network, const Address& address, AcceptorOptions options,
                   std::vector<Endpoint> endpoints) {
  CAIRN_CHECK(!endpoints.empty(), "an acceptor needs an endpoint");
  impl_ = std::make_unique<Impl>(network, address, std::move(options), std::move(endpoints));
}

Acceptor::~Acceptor() {
  stop();
  // On this thread at once: what the calls under way refer to may go right after the acceptor.
  impl_->for_each_doorway([own = &impl_->reactor](const std::shared_ptr<Doorway>& doorway) {
    if (doorway->endpoint.reactor == own) doorway->close();
  });
}

const Address& Acceptor::address() const { return impl_->address; }
std::size_t Acceptor::connections() const { return *impl_->count; }
void Acceptor::set_session(std::uint64_t session) { impl_->options.session = session; }
void Acceptor::stop() { impl_->stop(); }

}  // namespace cairn::rpc
