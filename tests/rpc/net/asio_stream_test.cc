// The byte stream on its own: sizes at random, both directions at once, cancelled operations.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "core/base/error.h"
#include "core/base/random.h"
#include "rpc/net/asio_stream.h"
#include "tests/effort.h"

namespace cairn::rpc {
namespace {

void connect_over_tcp(int* fds) {
  const int door = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  fds[0] = ::socket(AF_INET, SOCK_STREAM, 0);
  CAIRN_CHECK(::bind(door, any, size) == 0 && ::listen(door, 1) == 0 &&
              ::getsockname(door, any, &size) == 0 && ::connect(fds[0], any, size) == 0);
  fds[1] = ::accept(door, nullptr, nullptr);
  CAIRN_CHECK(fds[1] >= 0);
  ::close(door);
}

struct StreamPair {
  explicit StreamPair(Reactor& reactor, StreamOptions options = {}, int family = AF_UNIX) {
    int fds[2];
    if (family == AF_INET)
      connect_over_tcp(fds);
    else
      CAIRN_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    a = make_fd_socket(fds[0], family, "a")->attach(reactor, options);
    b = make_fd_socket(fds[1], family, "b")->attach(reactor, options);
  }
  kj::Own<ByteStream> a, b;
};

std::uint8_t byte_at(std::size_t at) { return static_cast<std::uint8_t>(at * 7 + (at >> 8)); }

Task<void> write_randomly(ByteStream& stream, std::size_t total, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t at = 0; at < total;) {
    const std::size_t most = random.below(4) == 0 ? 400'000 : 3000;
    const std::size_t size = std::min<std::size_t>(total - at, 1 + random.below(most));
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_at(at + i);
    auto half = size / 2;
    kj::ArrayPtr<const kj::byte> pieces[2] = {kj::arrayPtr(bytes.data(), half),
                                              kj::arrayPtr(bytes.data() + half, size - half)};
    co_await stream.write(kj::arrayPtr(pieces, 2));
    at += size;
  }
}

Task<void> read_randomly(ByteStream& stream, std::size_t total, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint8_t> bytes(400'000);
  for (std::size_t at = 0; at < total;) {
    auto max = std::min<std::size_t>(total - at, 1 + random.below(bytes.size()));
    auto min = 1 + random.below(max);
    auto got = co_await stream.tryRead(bytes.data(), min, max);
    if (got < min || got > max)
      throw InternalError(str("asked for ", min, " to ", max, " bytes, got ", got));
    for (std::size_t i = 0; i < got; ++i)
      if (bytes[i] != byte_at(at + i)) throw DataLossError(str("byte ", at + i, " is wrong"));
    at += got;
  }
}

TEST(ByteStream, RandomSizesArriveInOrderBothWaysUnderEveryOption) {
  constexpr std::size_t kTotal = effort(8 << 20);
  for (std::size_t read_ahead : {0, 100, 64 << 10}) {
    for (auto [cork, batch] : {std::pair{0, 0}, {8 << 10, 2 << 10}, {8 << 10, 1 << 20}}) {
      auto reactor = make_reactor();
      StreamPair pair(*reactor, {.read_ahead = read_ahead,
                                 .cork = static_cast<std::size_t>(cork),
                                 .batch = static_cast<std::size_t>(batch),
                                 .high_water = 64 << 10});
      kj::Promise<void> all[] = {
          write_randomly(*pair.a, kTotal, 1), read_randomly(*pair.b, kTotal, 2),
          write_randomly(*pair.b, kTotal, 3), read_randomly(*pair.a, kTotal, 4)};
      auto done = kj::joinPromises(kj::heapArray<kj::Promise<void>>(
          std::make_move_iterator(all), std::make_move_iterator(all + 4)));
      reactor->wait(reactor->with_deadline(kj::mv(done), std::chrono::seconds(60), "the exchange"));
      EXPECT_EQ(pair.a->bytes_in(), kTotal);
      EXPECT_EQ(pair.b->bytes_out(), kTotal);
    }
  }
}

// The reader of a busy writer has something to do before the writer is idle.
TEST(ByteStream, ABatchOfSmallWritesLeavesWithinTheSameTurnOfTheLoop) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor, {.cork = 8 << 10, .batch = 1000});
  char bytes[400] = {};
  auto sent = [&] {
    int arrived = 0;
    KJ_IF_MAYBE (fd, pair.b->getFd()) {
      CAIRN_CHECK(::ioctl(*fd, FIONREAD, &arrived) == 0);
    }
    return arrived;
  };
  auto first = pair.a->write(bytes, sizeof bytes);
  auto second = pair.a->write(bytes, sizeof bytes);
  EXPECT_EQ(sent(), 0);
  auto third = pair.a->write(bytes, sizeof bytes);
  EXPECT_EQ(sent(), 1200);
}

TEST(ByteStream, SmallWritesBehindABlockedLargeOneKeepTheirPlace) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor);
  constexpr std::size_t kBulk = 4 << 20;
  std::vector<std::uint8_t> bytes(kBulk + 300);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(i);
  // Small, large and small again within one turn of the loop: the small ones wait in the cork
  // around the blocked one.
  auto first = pair.a->write(bytes.data(), 100);
  auto bulk = pair.a->write(bytes.data() + 100, kBulk);
  auto last = pair.a->write(bytes.data() + 100 + kBulk, 200);
  reactor->wait(reactor->with_deadline(read_randomly(*pair.b, bytes.size(), 5),
                                       std::chrono::seconds(20), "reading"));
}

// As a lane that has a step to compute, while the next one's rows come in.
TEST(ByteStream, ALongReadLeavesTheLoopToOthersInBetween) {
  constexpr std::size_t kTotal = 64 << 10;
  auto reactor = make_reactor();
  StreamPair pair(*reactor, {.read_ahead = 0, .cork = 0, .read_turn = 4 << 10});
  const std::vector<char> bytes(kTotal);
  reactor->wait(pair.a->write(bytes.data(), bytes.size()));
  std::size_t read = 0;
  auto read_all = [&]() -> Task<void> {
    std::vector<char> some(1 << 10);
    while (read < kTotal) read += co_await pair.b->tryRead(some.data(), 1, some.size());
  };
  auto reading = read_all().start();
  reactor->wait(reactor->yield());
  EXPECT_LT(read, kTotal);
  reactor->wait(reactor->with_deadline(kj::mv(reading), std::chrono::seconds(20), "the rest"));
  EXPECT_EQ(read, kTotal);
}

TEST(ByteStream, ACancelledReadLosesNothing) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor);
  char byte = 0;
  for (int i = 0; i < 10; ++i) {
    auto dropped = pair.b->tryRead(&byte, 1, 1);
    EXPECT_FALSE(dropped.poll(reactor->scope()));
  }
  reactor->wait(pair.a->write("x", 1));
  EXPECT_EQ(reactor->wait(pair.b->tryRead(&byte, 1, 1)), 1u);
  EXPECT_EQ(byte, 'x');
}

// Tests that run over either kind of socket.
class Socketed : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ByteStream, Socketed, testing::Values(AF_UNIX, AF_INET),
                         [](const auto& info) { return info.param == AF_UNIX ? "Unix" : "Tcp"; });

TEST_P(Socketed, AnAbortEndsPendingReadsOnBothSides) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor, {}, GetParam());
  char byte;
  auto near = pair.a->tryRead(&byte, 1, 1);
  auto far = pair.b->tryRead(&byte, 1, 1);
  EXPECT_FALSE(near.poll(reactor->scope()));
  pair.a->abort();
  EXPECT_EQ(reactor->wait(kj::mv(near)), 0u);
  EXPECT_EQ(reactor->wait(kj::mv(far)), 0u);
  EXPECT_THROW(reactor->wait(pair.a->write("x", 1)), UnavailableError);
  EXPECT_EQ(pair.a->read_now(&byte, 1), 0u);
  EXPECT_EQ(reactor->wait(pair.a->tryRead(&byte, 1, 1)), 0u);
}

// Memory that says when it is let go of.
class Lent {
 public:
  explicit Lent(std::size_t bytes, std::size_t position = 0) {
    auto pair = kj::newPromiseAndFulfiller<void>();
    let_go = kj::mv(pair.promise);
    memory_ = std::make_shared<Memory>(bytes, kj::mv(pair.fulfiller));
    for (std::size_t i = 0; i < bytes; ++i) memory_->bytes[i] = byte_at(position + i);
    seen_ = memory_;
  }
  ByteStream::Piece piece() {
    const auto bytes = kj::arrayPtr(memory_->bytes.data(), memory_->bytes.size());
    return {bytes, std::move(memory_)};
  }
  bool held() const { return !seen_.expired(); }

  kj::Promise<void> let_go = nullptr;

 private:
  struct Memory {
    Memory(std::size_t size, kj::Own<kj::PromiseFulfiller<void>> told)
        : bytes(size), gone(kj::mv(told)) {}
    ~Memory() { gone->fulfill(); }
    std::vector<std::uint8_t> bytes;
    kj::Own<kj::PromiseFulfiller<void>> gone;
  };
  std::shared_ptr<Memory> memory_;
  std::weak_ptr<Memory> seen_;
};

std::vector<ByteStream::Piece> only(ByteStream::Piece piece) {
  std::vector<ByteStream::Piece> pieces;
  pieces.push_back(std::move(piece));
  return pieces;
}

constexpr std::size_t kLent = 1 << 20;  // less than a socket's buffer

TEST(ByteStream, LentMemoryIsKeptUntilTheOtherSideHasReadItAndSaysSo) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor);
  int bytes = 4 << 20;
  pair.a->setsockopt(SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  Lent first(kLent), second(kLent, kLent);
  reactor->wait(pair.a->write(only(first.piece())));
  reactor->wait(pair.a->write(only(second.piece())));
  auto say = [&] {
    char byte = 'x';
    reactor->wait(pair.b->write(&byte, 1));
    reactor->wait(pair.a->tryRead(&byte, 1, 1));
  };
  say();
  EXPECT_TRUE(first.held());
  reactor->wait(read_randomly(*pair.b, 2 * kLent - 1, 6));
  say();
  EXPECT_FALSE(first.held());
  EXPECT_TRUE(second.held());  // for its last byte
  char last = 0;
  reactor->wait(pair.b->read(&last, 1));
  say();
  EXPECT_FALSE(second.held());
}

// TCP's count of unread bytes says what has come to the peer's socket, not what was read from it.
TEST(ByteStream, NothingIsLentOverTcp) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor, {}, AF_INET);
  Lent lent(kLent);
  kj::Promise<void> both[] = {pair.a->write(only(lent.piece())),
                              read_randomly(*pair.b, kLent - 1, 6)};
  auto done = kj::joinPromises(kj::heapArray<kj::Promise<void>>(std::make_move_iterator(both),
                                                                std::make_move_iterator(both + 2)));
  reactor->wait(kj::mv(done));
  EXPECT_FALSE(lent.held());
}

// One that never answers.
TEST(ByteStream, ToAPeerThatNeverSaysAnythingLittleIsLent) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor);
  std::size_t held = 0;
  std::vector<Lent> all;
  for (int i = 0; i < 100; ++i) {
    all.emplace_back(kLent);
    auto written = pair.a->write(only(all.back().piece()));
    std::vector<char> read(kLent);
    reactor->wait(pair.b->tryRead(read.data(), kLent, kLent));
    reactor->wait(kj::mv(written));
    held += all.back().held() ? 1 : 0;
  }
  EXPECT_EQ(held, ZeroCopyPages::kKeptMax / kLent);
}

TEST(ByteStream, LentMemoryOutlivesTheStreamUntilTheOtherSideHasReadIt) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor);
  int bytes = 4 << 20;
  pair.a->setsockopt(SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  Lent lent(kLent);
  reactor->wait(pair.a->write(only(lent.piece())));
  pair.a = nullptr;
  EXPECT_FALSE(lent.let_go.poll(reactor->scope()));
  reactor->wait(read_randomly(*pair.b, kLent, 7));
  char byte;
  EXPECT_EQ(reactor->wait(pair.b->tryRead(&byte, 1, 1)), 0u);
  reactor->wait(
      reactor->with_deadline(kj::mv(lent.let_go), std::chrono::seconds(20), "letting go"));
}

TEST_P(Socketed, LentMemoryThatNobodyWillReadIsLetGoOf) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor, {}, GetParam());
  Lent lent(16 * kLent);  // more than the sockets take
  auto write = pair.a->write(only(lent.piece()));
  pair.b = nullptr;
  // and no SIGPIPE, which would end the program
  EXPECT_THROW(reactor->wait(kj::mv(write)), UnavailableError);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  pair.a = nullptr;
  reactor->wait(
      reactor->with_deadline(kj::mv(lent.let_go), std::chrono::seconds(20), "letting go"));
}

TEST_P(Socketed, LentAndCopiedPiecesArriveInOrder) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor, {}, GetParam());
  constexpr std::size_t kTotal = effort(40 << 20);
  auto write = [](ByteStream& stream) -> Task<void> {
    Random random(8);
    for (std::size_t at = 0; at < kTotal;) {
      std::vector<ByteStream::Piece> pieces;
      for (std::uint64_t i = 1 + random.below(4); i > 0 && at < kTotal; --i) {
        const auto size = std::min<std::size_t>(
            kTotal - at, 1 + random.below(random.below(2) == 0 ? 3'000'000 : 100'000));
        pieces.push_back(Lent(size, at).piece());
        at += size;
      }
      co_await stream.write(std::move(pieces));
    }
  };
  kj::Promise<void> both[] = {write(*pair.a), read_randomly(*pair.b, kTotal, 9)};
  auto done = kj::joinPromises(kj::heapArray<kj::Promise<void>>(std::make_move_iterator(both),
                                                                std::make_move_iterator(both + 2)));
  reactor->wait(reactor->with_deadline(kj::mv(done), std::chrono::seconds(60), "the exchange"));
}

TEST_P(Socketed, WhatTheSystemDoesNotLetUsLendIsCopied) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor, {}, GetParam());
  Lent lent(kLent);
  rlimit before{};
  CAIRN_CHECK(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  CAIRN_CHECK(::setrlimit(RLIMIT_NOFILE, &none) == 0);  // and so no pipe
  auto written = pair.a->write(only(lent.piece()));
  ::setrlimit(RLIMIT_NOFILE, &before);
  reactor->wait(reactor->with_deadline(read_randomly(*pair.b, kLent, 10), std::chrono::seconds(20),
                                       "reading"));
  reactor->wait(kj::mv(written));
}

TEST_P(Socketed, ASmallPieceIsCopiedAndItsOwnerLetGoOfAtOnce) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor, {}, GetParam());
  Lent small(40 << 10);
  reactor->wait(pair.a->write(only(small.piece())));
  EXPECT_FALSE(small.held());
}

TEST(ByteStream, ADetachedStreamGoesOnElsewhere) {
  auto reactor = make_reactor();
  StreamPair pair(*reactor, kPlainStream);
  auto socket = pair.a->detach();
  pair.a = nullptr;
  reactor->wait(pair.b->write("hello", 5));
  auto again = socket->attach(*reactor, {});
  char text[6] = "";
  EXPECT_EQ(reactor->wait(again->tryRead(text, 5, 5)), 5u);
  EXPECT_STREQ(text, "hello");
}

}  // namespace
}  // namespace cairn::rpc
