// A service for tests, and a server and client joined by some network.
#pragma once
#include <pthread.h>

#include <memory>
#include <string>
#include <vector>

#include "rpc/net/connection.h"
#include "rpc/net/network.h"
#include "rpc/server/server.h"
#include "tests/rpc/echo.capnp.h"

namespace cairn::rpc {

using wire_test::Echo;

// The service's record of its calls, for the test.
struct EchoLog {
  int started_never = 0;
  int dropped_never = 0;
  std::uint64_t served = 0;
  std::vector<std::uint8_t> pushed;  // by the newest call
};

class EchoService final : public Echo::Server {
 public:
  EchoService(Connection& connection, EchoLog& log) : connection_(connection), log_(log) {}

  kj::Promise<void> echo(EchoContext context) override {
    context.getResults().setN(context.getParams().getN());
    context.getResults().setServed(++log_.served);
    return kj::READY_NOW;
  }
  kj::Promise<void> fail(FailContext context) override {
    return connection_.guard(fail_task(context));
  }
  kj::Promise<void> pull(PullContext context) override {
    auto bytes = context.getParams().getBytes();
    auto buffer = connection_.buffers().take(bytes);
    for (std::size_t i = 0; i < bytes; ++i) buffer.get()[i] = static_cast<std::uint8_t>(i * 31);
    auto results = context.getResults(capnp::MessageSize{8, 0});
    auto orphanage = capnp::Orphanage::getForMessageContaining(results);
    results.adoptData(connection_.attach(orphanage, Attachment(buffer.get(), bytes, buffer)));
    return kj::READY_NOW;
  }
  kj::Promise<void> push(PushContext context) override {
    const auto data = context.getParams().getData();
    log_.pushed.assign(data.begin(), data.end());
    context.getResults().setBytes(data.size());
    return kj::READY_NOW;
  }
  kj::Promise<void> never(NeverContext context) override {
    context.allowCancellation();
    return connection_.guard(never_task(log_));
  }
  kj::Promise<void> thread(ThreadContext context) override {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    context.getResults().setName(name);
    return kj::READY_NOW;
  }

 private:
  static Task<void> fail_task(FailContext context) {
    co_await kj::evalLater([] {});
    throw_error(static_cast<Code>(context.getParams().getCode()),
                context.getParams().getMessage().cStr());
  }
  static Task<void> never_task(EchoLog& log) {
    struct Leaving {
      EchoLog& log;
      ~Leaving() { ++log.dropped_never; }
    };
    ++log.started_never;
    Leaving leaving{log};
    co_await kj::Promise<void>(kj::NEVER_DONE);
  }
  Connection& connection_;
  EchoLog& log_;
};

inline Endpoint echo_endpoint(Reactor& reactor, EchoLog& log) {
  return {&reactor, [&log](const PeerInfo&, Connection& connection) -> capnp::Capability::Client {
            return kj::heap<EchoService>(connection, log);
          }};
}

inline AcceptorOptions ps_options() {
  AcceptorOptions options;
  options.cluster = "test";
  options.role = Role::kPs;
  options.task = 1;
  options.incarnation = 77;
  return options;
}

inline Hello worker_hello() {
  Hello hello;
  hello.cluster = "test";
  hello.role = Role::kWorker;
  hello.task = 2;
  hello.incarnation = 5;
  return hello;
}

inline constexpr Duration kPatience = std::chrono::seconds(20);

inline const Address kAnyPort{Address::Scheme::kTcp, "127.0.0.1", 0};

// A server and a client on one real loop.
struct EchoPair {
  explicit EchoPair(Transport transport = Transport::kAuto, AcceptorOptions options = ps_options())
      : network(make_socket_network(transport)),
        acceptor(*network, kAnyPort, options, {echo_endpoint(*reactor, log)}) {}

  std::unique_ptr<Connection> connect(Hello hello = worker_hello(),
                                      ConnectionOptions options = {}) {
    return reactor->wait(network->connect(*reactor, acceptor.address(), hello, kPatience, options));
  }
  template <typename T>
  T wait(kj::Promise<T> promise) {
    return reactor->wait(reactor->with_deadline(kj::mv(promise), kPatience, "the test's call"));
  }

  std::unique_ptr<Reactor> reactor = make_reactor();
  EchoLog log;
  std::unique_ptr<Network> network;
  Acceptor acceptor;
};

inline kj::Promise<std::uint64_t> echo(Echo::Client client, std::uint64_t n) {
  auto request = client.echoRequest();
  request.setN(n);
  return request.send().then(
      [](capnp::Response<Echo::EchoResults>&& response) { return response.getN(); });
}

// The error that `promise` ends with; Unknown and empty: none.
template <typename Wait, typename T>
ErrorParts error_of(Wait&& wait, kj::Promise<T> promise) {
  try {
    wait(kj::mv(promise));
  } catch (...) {
    return error_parts(std::current_exception());
  }
  return {Code::kUnknown, "no error", {}};
}

}  // namespace cairn::rpc
