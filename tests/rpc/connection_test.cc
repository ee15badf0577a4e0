#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rpc/loop/memory_use.h"
#include "tests/rpc/echo_service.h"

namespace cairn::rpc {
namespace {

using namespace std::chrono_literals;

struct ConnectionTest : testing::TestWithParam<Transport> {
  EchoPair pair{GetParam()};
  auto waiter() {
    return [this](auto promise) { pair.wait(kj::mv(promise)); };
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, ConnectionTest,
                         testing::Values(Transport::kTcp, Transport::kUnix),
                         [](auto& info) { return info.param == Transport::kTcp ? "Tcp" : "Unix"; });

kj::Promise<std::uint64_t> push(Echo::Client client, std::size_t bytes) {
  auto request = client.pushRequest();
  request.initData(static_cast<kj::uint>(bytes));
  return request.send().then(
      [](capnp::Response<Echo::PushResults>&& response) { return response.getBytes(); });
}

TEST_P(ConnectionTest, CallsAreAnsweredAndBothSidesKnowEachOther) {
  auto connection = pair.connect();
  EXPECT_EQ(pair.wait(echo(connection->bootstrap<Echo>(), 7)), 7u);
  EXPECT_EQ(connection->peer().name(), "/job:ps/task:1");
  EXPECT_EQ(connection->peer().incarnation, 77u);
  EXPECT_EQ(connection->peer().endpoints, 1u);
  bool over_unix = connection->peer().address.starts_with("unix:");
  EXPECT_EQ(over_unix, GetParam() == Transport::kUnix) << connection->peer().address;
  EXPECT_GT(connection->traffic().bytes_in, 0u);
  EXPECT_GT(connection->traffic().bytes_out, 0u);
}

TEST_P(ConnectionTest, FortyMegabytesGoEitherWayAndMayBeReadTwice) {
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  constexpr std::size_t kBytes = 40 << 20;
  EXPECT_EQ(pair.wait(push(client, kBytes)), kBytes);
  auto request = client.pullRequest();
  request.setBytes(kBytes);
  auto response = pair.wait(kj::Promise<capnp::Response<Echo::PullResults>>(request.send()));
  for (int reading = 0; reading < 3; ++reading) {
    auto data = response.getData();
    ASSERT_EQ(data.size(), kBytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.begin()) % 4096, 0u);
    for (std::size_t i = 0; i < kBytes; i += 4099)
      ASSERT_EQ(data[i], static_cast<std::uint8_t>(i * 31)) << i;
  }
}

TEST_P(ConnectionTest, DataThatStandInSeveralPlacesArriveAsOneAndAreLetGoOf) {
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  for (const std::size_t bytes : {std::size_t{3000}, std::size_t{300'000}}) {
    // a Unix socket takes the larger ones by reference
    std::vector<std::uint8_t> expected;
    std::vector<ByteStream::Piece> pieces;
    std::vector<std::weak_ptr<void>> owners;
    for (std::size_t piece = 0; piece < 40; ++piece) {
      auto part = std::make_shared<std::vector<std::uint8_t>>(
          bytes + (piece % 2 == 0 ? piece : 80 - piece - 1));
      for (std::size_t i = 0; i < part->size(); ++i)
        (*part)[i] = static_cast<std::uint8_t>(i * 31 + piece);
      expected.insert(expected.end(), part->begin(), part->end());
      pieces.push_back({kj::arrayPtr(part->data(), part->size()), part});
      owners.push_back(part);
    }
    ASSERT_EQ(expected.size() % 8, 0u);
    auto request = client.pushRequest();
    auto orphanage = capnp::Orphanage::getForMessageContaining(Echo::PushParams::Builder(request));
    request.adoptData(connection->attach(orphanage, Attachment(std::move(pieces))));
    pair.wait(request.send().ignoreResult());
    EXPECT_EQ(pair.log.pushed, expected);
    EXPECT_EQ(pair.wait(echo(client, 1)), 1u);
    EXPECT_TRUE(std::all_of(owners.begin(), owners.end(),
                            [](const auto& owner) { return owner.expired(); }));
  }
}

TEST_P(ConnectionTest, ATooLargeRequestFailsAloneWithAClearError) {
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  auto error = error_of(waiter(), push(client, 65 << 20));
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_NE(error.message.find("message_bytes_max"), std::string::npos) << error.message;
  EXPECT_EQ(pair.wait(echo(client, 8)), 8u);
}

TEST_P(ConnectionTest, ATooLargeReplyFailsItsCallAlone) {
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  auto request = client.pullRequest();
  request.setBytes(65 << 20);
  auto error = error_of(waiter(), request.send().ignoreResult());
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_EQ(pair.wait(echo(client, 8)), 8u);
}

TEST_P(ConnectionTest, MixedSizesKeepTheirContents) {
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  std::vector<kj::Promise<void>> calls;
  for (std::size_t i = 0; i < 300; ++i) {
    std::size_t bytes = i % 3 == 0 ? 1 : i % 3 == 1 ? 5000 + i : 300'000 + i;
    auto request = client.pullRequest();
    request.setBytes(bytes);
    calls.push_back(request.send().then([bytes](capnp::Response<Echo::PullResults>&& response) {
      auto data = response.getData();
      bool right = data.size() == bytes;
      for (std::size_t at = 0; right && at < bytes; ++at)
        right = data[at] == static_cast<std::uint8_t>(at * 31);
      if (!right) throw DataLossError(str("the reply of ", bytes, " bytes came back changed"));
    }));
    calls.push_back(push(client, bytes).ignoreResult());
  }
  for (auto& call : calls) pair.wait(kj::mv(call));
}

TEST_P(ConnectionTest, LossMakesPendingAndLaterCallsUnavailable) {
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  auto pending = client.neverRequest().send().ignoreResult();
  pair.wait(echo(client, 1));
  EXPECT_TRUE(connection->connected());
  pair.acceptor.stop();
  EXPECT_EQ(error_of(waiter(), kj::mv(pending)).code, Code::kUnavailable);
  EXPECT_EQ(error_of(waiter(), echo(client, 2).ignoreResult()).code, Code::kUnavailable);
  pair.wait(connection->on_disconnect());
  EXPECT_FALSE(connection->connected());
  EXPECT_EQ(error_of(waiter(), connection->acquire_credit(Way::kOut, 1).ignoreResult()).code,
            Code::kUnavailable);
}

TEST_P(ConnectionTest, ClosingOnTheDiallersSideEndsItOnTheOther) {
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  auto pending = client.neverRequest().send().ignoreResult();
  pair.wait(echo(client, 1));
  connection->close();
  EXPECT_EQ(error_of(waiter(), kj::mv(pending)).code, Code::kUnavailable);
  while (pair.acceptor.connections() > 0) pair.wait(pair.reactor->yield());
  EXPECT_EQ(pair.log.dropped_never, 1);
}

TEST_P(ConnectionTest, AnIdleConnectionNoticesTheEndOfTheOther) {
  auto connection = pair.connect();
  pair.acceptor.stop();
  pair.wait(connection->on_disconnect());
  EXPECT_FALSE(connection->connected());
}

TEST_P(ConnectionTest, ADroppedCallIsCancelledOnTheServer) {
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  {
    auto dropped = client.neverRequest().send();
    while (pair.log.started_never == 0) pair.wait(echo(client, 0));
  }
  while (pair.log.dropped_never == 0) pair.wait(echo(client, 0));
  EXPECT_EQ(pair.log.dropped_never, 1);
}

TEST_P(ConnectionTest, ALateCallMissesItsDeadlineByName) {
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  auto call = pair.reactor->with_deadline(
      kj::Promise<void>(client.neverRequest().send().ignoreResult()), 20ms, "the pull");
  auto error = error_of(waiter(), kj::mv(call));
  EXPECT_EQ(error.code, Code::kDeadlineExceeded);
  EXPECT_NE(error.message.find("the pull"), std::string::npos);
}

TEST_P(ConnectionTest, DestroyingTheConnectionUnderCallsAndCapabilitiesIsSafe) {
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  auto pending = client.neverRequest().send().ignoreResult();
  pair.wait(echo(client, 1));
  connection.reset();
  EXPECT_EQ(error_of(waiter(), kj::mv(pending)).code, Code::kUnavailable);
  EXPECT_EQ(error_of(waiter(), echo(client, 2).ignoreResult()).code, Code::kUnavailable);
}

TEST(Connection, TheWholePairMayGoInAnyOrderWithCallsUnderWay) {
  for (int order = 0; order < 6; ++order) {
    auto reactor = make_reactor();
    EchoLog log;
    auto network = make_socket_network();
    auto acceptor = std::make_unique<Acceptor>(*network, kAnyPort, ps_options(),
                                               std::vector{echo_endpoint(*reactor, log)});
    auto connection =
        reactor->wait(network->connect(*reactor, acceptor->address(), worker_hello(), kPatience));
    auto client = std::make_unique<Echo::Client>(connection->bootstrap<Echo>());
    auto pending =
        std::make_unique<kj::Promise<void>>(client->neverRequest().send().ignoreResult());
    reactor->wait(echo(*client, 1));
    std::vector<std::function<void()>> ends = {
        [&] { acceptor.reset(); }, [&] { connection.reset(); }, [&] { pending.reset(); }};
    for (int first = order % 3, i = 0; i < 3; ++i)
      ends[static_cast<std::size_t>(order < 3 ? first + i : first + 3 - i) % 3]();
    EXPECT_EQ(log.started_never, 1);
    client.reset();
    reactor.reset();
    EXPECT_EQ(log.dropped_never, 1) << "order " << order;
  }
}

TEST(Connection, BulkMemoryGoesBackToThePoolOnceSent) {
  EchoPair pair;
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  for (int i = 0; i < 5; ++i) {
    auto request = client.pullRequest();
    request.setBytes(1 << 20);
    pair.wait(request.send().ignoreResult());
  }
  pair.wait(echo(client, 1));
  // One buffer of the server and one of the client, or one for both: the five calls shared them.
  EXPECT_GE(pair.reactor->buffers().unused_bytes(), std::size_t{1} << 20);
  EXPECT_LE(pair.reactor->buffers().unused_bytes(), std::size_t{2} << 20);
}

// A call, and the word that its answer is not wanted, in one turn of the loop: the answer is made,
// and never leaves.
TEST(Connection, AnswersOfCallsThatWereGivenUpHoldNoMemory) {
  EchoPair pair;
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  pair.wait(echo(client, 1));
  const std::size_t before = buffer_bytes();
  constexpr std::size_t kCalls = 20, kBytes = 1 << 20;
  for (std::size_t i = 0; i < kCalls; ++i) {
    {
      auto request = client.pullRequest();
      request.setBytes(kBytes);
      auto given_up = request.send();
    }
    pair.wait(echo(client, 2));
  }
  EXPECT_LE(buffer_bytes(), before + 3 * kBytes);  // of twenty
  EXPECT_TRUE(connection->connected());
}

TEST(MemoryUse, CountsBuffersInUseAndKept) {
  const std::size_t before = buffer_bytes();
  {
    BufferPool pool;
    auto buffer = pool.take(100'000);
    EXPECT_EQ(buffer_bytes(), before + (128 << 10));
    buffer.reset();
    EXPECT_EQ(buffer_bytes(), before + (128 << 10));  // it is kept
  }
  EXPECT_EQ(buffer_bytes(), before);
}

// Once for all uses of a buffer, until it is freed.
TEST(BufferPool, RegistersWhatItAllocates) {
  int registered = 0, asked = 0;
  BufferPool pool(64 << 10);  // keeps one
  auto before = pool.take(10);
  pool.register_with([&](std::byte* begin, std::size_t bytes) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % 4096, 0u);
    EXPECT_EQ(bytes, std::size_t{64} << 10);
    ++registered;
    ++asked;
    return std::shared_ptr<void>(nullptr, [&](std::nullptr_t) { --registered; });
  });
  pool.take(10);
  auto first = pool.take(60'000), second = pool.take(10);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(registered, 2);
  first = nullptr;
  EXPECT_EQ(registered, 2);
  second = nullptr;
  EXPECT_EQ(registered, 1);  // one is kept
  before = nullptr;
  pool = BufferPool();
  EXPECT_EQ(registered, 0);
}

TEST(BufferPool, TellsWhichBufferBytesFill) {
  BufferPool pool;
  auto first = pool.take(70'000), second = pool.take(10);  // 128 KiB and 64 KiB
  EXPECT_EQ(pool.buffer_of(first.get(), 70'000), first);
  // to keep it for so little would hold much more memory than is counted
  EXPECT_EQ(pool.buffer_of(first.get(), 100), nullptr);
  EXPECT_EQ(pool.buffer_of(second.get() + 9, 40'000), second);
  const std::uint8_t* gone = first.get();
  first.reset();
  EXPECT_EQ(pool.buffer_of(gone, 70'000), nullptr);
  EXPECT_EQ(pool.buffer_of(second.get(), 40'000), second);
}

}  // namespace
}  // namespace cairn::rpc
