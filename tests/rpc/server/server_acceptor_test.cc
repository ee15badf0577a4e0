#include <gtest/gtest.h>

#include "rpc/loop/reactor_thread.h"
#include "rpc/net/hello.h"
#include "tests/rpc/echo_service.h"

namespace cairn::rpc {
namespace {

using namespace std::chrono_literals;

ErrorParts refusal(EchoPair& pair, Hello hello) {
  return error_of([&](auto promise) { pair.reactor->wait(kj::mv(promise)); },
                  pair.network->connect(*pair.reactor, pair.acceptor.address(), hello, kPatience)
                      .ignoreResult());
}

void expect_names(const ErrorParts& error, std::initializer_list<const char*> parts) {
  for (auto part : parts)
    EXPECT_NE(error.message.find(part), std::string::npos)
        << part << " is not in: " << error.message;
}

// The pair still serves: whatever was refused cost nothing else.
void expect_alive(EchoPair& pair, Hello hello = worker_hello()) {
  auto connection = pair.connect(hello);
  EXPECT_EQ(pair.wait(echo(connection->bootstrap<Echo>(), 3)), 3u);
}

AcceptorOptions with_token() {
  auto options = ps_options();
  options.token = "right";
  return options;
}

TEST(AcceptorHello, AForeignVersionIsRefusedWithBothVersions) {
  EchoPair pair;
  auto hello = worker_hello();
  hello.version = 99;
  auto error = refusal(pair, hello);
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  expect_names(error, {"/job:ps/task:1", "version 2", "99"});
  expect_alive(pair);
}

TEST(AcceptorHello, AWrongTokenIsRefusedAndNotRepeated) {
  EchoPair pair(Transport::kAuto, with_token());
  auto hello = worker_hello();
  hello.token = "wrong-token";
  auto error = refusal(pair, hello);
  EXPECT_EQ(error.code, Code::kPermissionDenied);
  expect_names(error, {"/job:ps/task:1", "/job:worker/task:2", "token"});
  EXPECT_EQ(error.message.find("right"), std::string::npos);
  hello.token = "right";
  expect_alive(pair, hello);
}

TEST(AcceptorHello, AnotherClusterIsRefusedWithBothNames) {
  EchoPair pair;
  auto hello = worker_hello();
  hello.cluster = "other";
  auto error = refusal(pair, hello);
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  expect_names(error, {"/job:ps/task:1", "/job:worker/task:2", "\"other\"", "\"test\""});
  expect_alive(pair);
}

TEST(AcceptorHello, AnEndpointThatIsNotThereIsRefused) {
  EchoPair pair;
  auto hello = worker_hello();
  hello.endpoint = 4;
  EXPECT_EQ(refusal(pair, hello).code, Code::kNotFound);
  expect_alive(pair);
}

TEST(AcceptorHello, AFurtherEndpointIsMadeForTheFirstThatWantsItAndStays) {
  EchoLog log;
  int made = 0;
  auto options = with_token();
  Reactor* loop = nullptr;
  options.further = [&](const Hello& hello) -> std::optional<Endpoint> {
    if (hello.endpoint == 9) throw FailedPreconditionError("not the ninth");
    if (hello.endpoint != 4) return std::nullopt;
    ++made;
    return echo_endpoint(*loop, log);
  };
  EchoPair pair(Transport::kAuto, options);
  loop = pair.reactor.get();
  auto hello = worker_hello();
  hello.endpoint = 4;
  EXPECT_EQ(refusal(pair, hello).code, Code::kPermissionDenied);
  EXPECT_EQ(made, 0);

  hello.token = "right";
  for (int round = 0; round < 2; ++round) {
    auto connection = pair.connect(hello);
    EXPECT_EQ(connection->peer().endpoints, 1u);
    EXPECT_EQ(pair.wait(echo(connection->bootstrap<Echo>(), 3)), 3u);
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(log.served, 2u);
  hello.endpoint = 5;
  EXPECT_EQ(refusal(pair, hello).code, Code::kNotFound);
  hello.endpoint = 9;
  EXPECT_EQ(refusal(pair, hello).code, Code::kFailedPrecondition);
}

TEST(AcceptorHello, TheOwnerMayRefuseAnIncarnation) {
  auto options = ps_options();
  options.admit = [](const Hello& hello) -> std::optional<std::string> {
    if (hello.incarnation == 5) return "incarnation 5 was fenced";
    return std::nullopt;
  };
  EchoPair pair(Transport::kAuto, options);
  expect_names(refusal(pair, worker_hello()), {"fenced"});
  auto fresh = worker_hello();
  fresh.incarnation = 6;
  expect_alive(pair, fresh);
}

TEST(AcceptorHello, OneConnectionTooManyIsUnavailable) {
  auto options = ps_options();
  options.connections_max = 1;
  EchoPair pair(Transport::kAuto, options);
  auto first = pair.connect();
  pair.wait(echo(first->bootstrap<Echo>(), 1));
  EXPECT_EQ(refusal(pair, worker_hello()).code, Code::kUnavailable);
  first.reset();
  while (pair.acceptor.connections() > 0) pair.wait(pair.reactor->yield());
  expect_alive(pair);
}

TEST(AcceptorHello, RubbishIsCutOffAndCostsNothingElse) {
  EchoPair pair(Transport::kTcp);
  auto socket = pair.wait(pair.network->dial(*pair.reactor, pair.acceptor.address()));
  auto stream = socket->attach(*pair.reactor, kPlainStream);
  std::string rubbish(5000, 'G');
  pair.wait(stream->write(rubbish.data(), rubbish.size()));
  char answer[16];
  auto ended = error_of([&](auto promise) { pair.wait(kj::mv(promise)); },
                        stream->tryRead(answer, 1, sizeof answer).then([](size_t got) {
                          if (got == 0) throw UnavailableError("cut off");
                        }));
  EXPECT_EQ(ended.code, Code::kUnavailable);
  expect_alive(pair);
}

TEST(AcceptorHello, SilenceIsCutOffAtTheDeadline) {
  auto options = ps_options();
  options.hello_deadline = 30ms;
  options.hellos_max = 1;  // and it delays no other for longer than that
  EchoPair pair(Transport::kTcp, options);
  auto socket = pair.wait(pair.network->dial(*pair.reactor, pair.acceptor.address()));
  auto stream = socket->attach(*pair.reactor, kPlainStream);
  char answer[16];
  EXPECT_EQ(pair.wait(stream->tryRead(answer, 1, sizeof answer)), 0u);
  expect_alive(pair);
}

TEST(AcceptorHello, WhoeverIsNoCairnProcessIsNamed) {
  auto reactor = make_reactor();
  auto network = make_socket_network(Transport::kTcp);
  auto listener = network->listen(*reactor, kAnyPort);
  auto stranger = [](Reactor& reactor, Listener& listener) -> Task<void> {
    auto socket = co_await listener.accept();
    auto stream = socket->attach(reactor, kPlainStream);
    co_await stream->write("HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    co_await kj::Promise<void>(kj::NEVER_DONE);
  }(*reactor, *listener)
                                                                  .start();
  auto error = error_of(
      [&](auto promise) { reactor->wait(kj::mv(promise)); },
      network->connect(*reactor, listener->address(), worker_hello(), kPatience).ignoreResult());
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
}

TEST(Acceptor, NobodyListeningIsUnavailable) {
  auto reactor = make_reactor();
  auto network = make_socket_network();
  Address address = network->listen(*reactor, kAnyPort)->address();
  auto error =
      error_of([&](auto promise) { reactor->wait(kj::mv(promise)); },
               network->connect(*reactor, address, worker_hello(), kPatience).ignoreResult());
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_NE(error.message.find(address.str()), std::string::npos) << error.message;
}

TEST(Acceptor, AnExposedAddressNeedsATokenOrTheUsersWord) {
  auto reactor = make_reactor();
  auto network = make_socket_network();
  EchoLog log;
  const Address everywhere{Address::Scheme::kTcp, "0.0.0.0", 0};
  auto listen = [&](AcceptorOptions options) {
    Acceptor(*network, everywhere, options, {echo_endpoint(*reactor, log)});
  };
  EXPECT_THROW(listen(ps_options()), FailedPreconditionError);
  EXPECT_NO_THROW(listen(with_token()));
  auto insecure = ps_options();
  insecure.insecure = true;
  EXPECT_NO_THROW(listen(insecure));
}

TEST(Acceptor, ATakenPortIsUnavailableByName) {
  EchoPair pair(Transport::kTcp);
  EXPECT_THROW(pair.network->listen(*pair.reactor, pair.acceptor.address()), UnavailableError);
}

TEST(Acceptor, PeersOfOneHostMeetOnTheUnixSocketAndFallBackToTcp) {
  {
    EchoPair both(Transport::kAuto);
    EXPECT_TRUE(both.connect()->peer().address.starts_with("unix:"));
  }
  EchoPair tcp_only(Transport::kTcp);
  auto automatic = make_socket_network(Transport::kAuto);
  auto connection = tcp_only.reactor->wait(automatic->connect(
      *tcp_only.reactor, tcp_only.acceptor.address(), worker_hello(), kPatience));
  EXPECT_TRUE(connection->peer().address.starts_with("tcp:"));
}

std::string thread_of(Reactor& reactor, Connection& connection) {
  auto response =
      reactor.wait(reactor.with_deadline(kj::Promise<capnp::Response<Echo::ThreadResults>>(
                                             connection.bootstrap<Echo>().threadRequest().send()),
                                         kPatience, "thread"));
  return response.getName().cStr();
}

TEST(Acceptor, EachEndpointIsServedByItsOwnThread) {
  auto reactor = make_reactor();
  EchoLog control, shards[2];
  ReactorThread first("shard-0"), second("shard-1");
  auto network = make_socket_network();
  Acceptor acceptor(*network, kAnyPort, ps_options(),
                    {echo_endpoint(*reactor, control), echo_endpoint(first.reactor(), shards[0]),
                     echo_endpoint(second.reactor(), shards[1])});
  for (int round = 0; round < 20; ++round) {
    auto hello = worker_hello();
    hello.endpoint = 1 + round % 2;
    auto connection =
        reactor->wait(network->connect(*reactor, acceptor.address(), hello, kPatience));
    EXPECT_EQ(connection->peer().endpoints, 3u);
    EXPECT_EQ(thread_of(*reactor, *connection), round % 2 == 0 ? "shard-0" : "shard-1");
  }
}

TEST(Acceptor, ThreadsMayEndBeforeTheAcceptorWithCallsUnderWay) {
  auto reactor = make_reactor();
  EchoLog control, shard;
  ReactorThread thread("shard-0");
  auto network = make_socket_network();
  Acceptor acceptor(*network, kAnyPort, ps_options(),
                    {echo_endpoint(*reactor, control), echo_endpoint(thread.reactor(), shard)});
  auto hello = worker_hello();
  hello.endpoint = 1;
  auto connection = reactor->wait(network->connect(*reactor, acceptor.address(), hello, kPatience));
  auto client = connection->bootstrap<Echo>();
  auto pending = client.neverRequest().send().ignoreResult();
  reactor->wait(echo(client, 1));
  thread.stop();
  EXPECT_EQ(shard.dropped_never, 1);
  EXPECT_THROW(reactor->wait(reactor->with_deadline(kj::mv(pending), kPatience, "the call")),
               UnavailableError);
  // The hand-over finds the thread gone: the stream is closed, nothing hangs.
  auto late = reactor->wait(network->connect(*reactor, acceptor.address(), hello, kPatience));
  reactor->wait(reactor->with_deadline(late->on_disconnect(), kPatience, "the end"));
}

TEST(Acceptor, StoppingItEndsTheConnectionsOfOtherThreads) {
  auto reactor = make_reactor();
  EchoLog control, shard;
  ReactorThread thread("shard-0");
  auto network = make_socket_network();
  auto acceptor = std::make_unique<Acceptor>(
      *network, kAnyPort, ps_options(),
      std::vector{echo_endpoint(*reactor, control), echo_endpoint(thread.reactor(), shard)});
  auto hello = worker_hello();
  hello.endpoint = 1;
  auto connection =
      reactor->wait(network->connect(*reactor, acceptor->address(), hello, kPatience));
  reactor->wait(echo(connection->bootstrap<Echo>(), 1));
  acceptor.reset();
  reactor->wait(reactor->with_deadline(connection->on_disconnect(), kPatience, "the end"));
}

}  // namespace
}  // namespace cairn::rpc
