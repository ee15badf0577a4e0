#include "rpc/net/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "core/base/error.h"
#include "rpc/loop/memory_use.h"
#include "tests/rpc/echo_service.h"

namespace cairn::rpc {
namespace {

constexpr std::size_t kSharedBytes = 1 << 20;

ConnectionOptions sharing(std::size_t bytes = kSharedBytes) {
  ConnectionOptions options;
  options.shared_bytes = bytes;
  return options;
}

TEST(SharedMemory, BothSidesSeeTheSameBytes) {
  auto ours = SharedMemory::create(kSharedBytes);
  auto theirs = SharedMemory::adopt(::dup(ours->descriptor()), kSharedBytes);
  ASSERT_NE(theirs, nullptr);
  EXPECT_NE(theirs->data(), ours->data());
  std::strcpy(reinterpret_cast<char*>(ours->at(4096, 16).data()), "rows");
  EXPECT_STREQ(reinterpret_cast<const char*>(theirs->at(4096, 16).data()), "rows");
}

TEST(SharedMemory, NobodyCanMakeTheOtherFault) {
  auto memory = SharedMemory::create(kSharedBytes);
  EXPECT_NE(::ftruncate(memory->descriptor(), 0), 0);
  const int unsealed = ::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(unsealed, kSharedBytes), 0);
  EXPECT_EQ(SharedMemory::adopt(unsealed, kSharedBytes), nullptr);
}

TEST(SharedMemory, OnlyMemoryOfTheAllowedSizeIsTaken) {
  auto memory = SharedMemory::create(kSharedBytes);
  EXPECT_EQ(SharedMemory::adopt(::dup(memory->descriptor()), kSharedBytes - 1), nullptr);
  EXPECT_EQ(SharedMemory::adopt(::open("/dev/zero", O_RDWR | O_CLOEXEC), kSharedBytes), nullptr);
  EXPECT_EQ(SharedMemory::adopt(::memfd_create("empty", MFD_CLOEXEC), kSharedBytes), nullptr);
}

TEST(SharedMemory, APlaceOutsideIsRefused) {
  auto memory = SharedMemory::create(kSharedBytes);
  EXPECT_EQ(memory->at(kSharedBytes, 0).size(), 0u);
  EXPECT_THROW(memory->at(kSharedBytes - 8, 9), InvalidArgumentError);
  EXPECT_THROW(memory->at(~std::uint64_t{7}, 16), InvalidArgumentError);
  EXPECT_THROW(memory->at(8, ~std::uint64_t{0}), InvalidArgumentError);
  EXPECT_THROW(memory->at(4, 8), InvalidArgumentError);
  int elsewhere = 0;
  EXPECT_FALSE(memory->offset_of(&elsewhere, sizeof elsewhere).has_value());
  EXPECT_EQ(memory->offset_of(memory->data() + 64, 8), 64u);
  EXPECT_FALSE(memory->offset_of(memory->data() + kSharedBytes - 4, 8).has_value());
}

TEST(SharedPool, ReusesWhatCameBackAndEndsWhereTheMemoryDoes) {
  SharedPool pool(SharedMemory::create(64 << 10));
  auto first = pool.take(20'000);
  auto second = pool.take(20'000);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(first, second);
  EXPECT_EQ(pool.take(25'000), nullptr);
  auto* place = first.get();
  first.reset();
  EXPECT_EQ(pool.take(20'001).get(), place);
}

TEST(SharedPool, WastesAtMostAQuarterOfLargeOnes) {
  SharedPool pool(SharedMemory::create(12 << 20));
  EXPECT_NE(pool.take((4 << 20) + 1), nullptr);
  std::vector<std::shared_ptr<std::uint8_t>> taken;
  for (int i = 0; i < 2; ++i) taken.push_back(pool.take((4 << 20) + 1));
  EXPECT_NE(taken.back(), nullptr);
}

TEST(MemoryUse, CountsWhatWasEverHandedOutOfSharedMemory) {
  const std::size_t before = shared_bytes();
  {
    SharedPool pool(SharedMemory::create(64 << 10));
    pool.take(8192);
    pool.take(8192);
    EXPECT_EQ(shared_bytes(), before + 8192);
  }
  EXPECT_EQ(shared_bytes(), before);
}

// Whole pages, each once; what was returned for them goes with the last buffer, before the memory.
TEST(SharedPool, TellsOfEachBufferWhenItIsFirstHandedOut) {
  std::vector<std::pair<std::size_t, std::size_t>> told;  // offset, bytes
  int registered = 0;
  auto memory = SharedMemory::create(64 << 10);
  const std::weak_ptr<SharedMemory> mapped = memory;
  const RegisterMemory registers = [&](std::byte* begin, std::size_t bytes) {
    told.emplace_back(begin - mapped.lock()->data(), bytes);
    ++registered;
    return std::shared_ptr<void>(nullptr, [&](std::nullptr_t) {
      EXPECT_FALSE(mapped.expired());
      --registered;
    });
  };
  std::shared_ptr<std::uint8_t> last;
  {
    SharedPool pool(std::move(memory), registers);
    pool.take(10);
    pool.take(4000);
    last = pool.take(20'000);
    EXPECT_EQ(pool.take(100'000), nullptr);
  }
  EXPECT_EQ(told, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 4096}, {4096, 20'480}}));
  EXPECT_EQ(registered, 2);
  last = nullptr;
  EXPECT_EQ(registered, 0);
}

TEST(SharedPool, BuffersOutliveIt) {
  std::shared_ptr<std::uint8_t> buffer;
  {
    SharedPool pool(SharedMemory::create(64 << 10));
    buffer = pool.take(10);
  }
  buffer.get()[9] = 1;
}

TEST(Sharing, ComesByItselfBetweenProcessesOfAHost) {
  EchoPair pair(Transport::kAuto);
  auto connection = pair.connect(worker_hello(), sharing());
  ASSERT_NE(connection->peer().shared, nullptr);
  EXPECT_EQ(connection->peer().shared->bytes(), kSharedBytes);
  EXPECT_EQ(pair.wait(echo(connection->bootstrap<Echo>(), 7)), 7u);
}

TEST(Sharing, IsLeftOutWhereTheTransportWasChosen) {
  for (const Transport transport : {Transport::kTcp, Transport::kUnix}) {
    EchoPair pair(transport);
    auto connection = pair.connect(worker_hello(), sharing());
    EXPECT_EQ(connection->peer().shared, nullptr);
    EXPECT_EQ(pair.wait(echo(connection->bootstrap<Echo>(), 7)), 7u);
  }
}

TEST(Sharing, AnAcceptorThatWillNotIsStillTalkedTo) {
  AcceptorOptions options = ps_options();
  options.connection.shared_bytes_max = kSharedBytes;
  EchoPair pair(Transport::kAuto, options);
  auto connection = pair.connect(worker_hello(), sharing(2 * kSharedBytes));
  EXPECT_EQ(connection->peer().shared, nullptr);
  EXPECT_EQ(pair.wait(echo(connection->bootstrap<Echo>(), 7)), 7u);
}

}  // namespace
}  // namespace cairn::rpc
