// The fake driver finds what it is there to find.
#include "tests/core/kernels/cuda/runtime/fake_driver.h"

#include <gmock/gmock.h>

#include <thread>

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct FakeDriverFinds : ::testing::Test {
  testing::FakeDriver driver;
  cuda::Stream one = driver.make_stream(), other = driver.make_stream();
  std::byte* memory = driver.allocate(256, one);
  cuda::Event event = driver.make_event();
  std::byte* pinned = driver.allocate_pinned(256);
  std::vector<cuda::Range> range{{memory, 256}};

  ~FakeDriverFinds() override {
    driver.wait(one);
    driver.wait(other);
    driver.release(memory, one);
    driver.release_pinned(pinned);
    driver.destroy(one);
    driver.destroy(other);
    driver.destroy(event);
  }
};

TEST_F(FakeDriverFinds, AReadThatWaitsForNoEvent) {
  driver.announce(one, {}, range);
  EXPECT_THAT([&] { driver.announce(other, range, {}); },
              ThrowsMessage<InternalError>(HasSubstr("a race")));
}

TEST_F(FakeDriverFinds, NoFaultInAReadThatAnEventMadeReady) {
  driver.announce(one, {}, range);
  driver.record(event, one);
  driver.wait_for(other, event);
  EXPECT_NO_THROW(driver.announce(other, range, {}));
}

TEST_F(FakeDriverFinds, AWriteOverWhatAnotherStreamStillReads) {
  driver.announce(one, {}, range);
  driver.record(event, one);
  driver.wait_for(other, event);
  driver.announce(other, range, {});
  EXPECT_THAT([&] { driver.announce(one, {}, range); },
              ThrowsMessage<InternalError>(HasSubstr("a race")));
}

TEST_F(FakeDriverFinds, NoFaultAfterTheHostHasWaited) {
  driver.announce(one, {}, range);
  driver.wait(one);
  EXPECT_NO_THROW(driver.announce(other, range, {}));
}

TEST_F(FakeDriverFinds, ARaceWithWhatOnlyAnotherThreadHasWaitedFor) {
  cuda::Stream theirs = nullptr;
  std::thread([&] {
    theirs = driver.make_stream();
    driver.announce(theirs, {}, range);
    driver.wait(theirs);
  }).join();
  EXPECT_THAT([&] { driver.announce(other, range, {}); },
              ThrowsMessage<InternalError>(HasSubstr("a race")));
  driver.wait(theirs);  // this thread too
  driver.destroy(theirs);
}

TEST_F(FakeDriverFinds, NoFaultWhereAThreadUsesAStreamAfterOneThatHadWaited) {
  driver.announce(one, {}, range);
  driver.wait(one);
  std::thread([&] { EXPECT_NO_THROW(driver.announce(other, range, {})); }).join();
}

TEST_F(FakeDriverFinds, WorkThatOneThreadRecordsWhileAnotherGoesOn) {
  const auto fill = [&] { driver.fill_zero(one, memory, 256); };
  memory[0] = std::byte{1};
  const auto recording = driver.record_work(one, [&] {
    fill();
    std::thread([&] { driver.announce(other, {}, {}); }).join();
  });
  EXPECT_EQ(memory[0], std::byte{1});
  recording->replay(one);
  EXPECT_EQ(memory[0], std::byte{0});
}

TEST_F(FakeDriverFinds, AStreamOfAnotherDevice) {
  testing::FakeDriver second("gpu:1");
  const cuda::Stream elsewhere = second.make_stream();
  EXPECT_THAT([&] { driver.wait(elsewhere); },
              ThrowsMessage<InternalError>(HasSubstr("another device's")));
  second.destroy(elsewhere);
}

TEST_F(FakeDriverFinds, OfABlockThatIsWatchedByRowsOnlyRacesOnOneRow) {
  driver.watch_rows(memory, 64);
  const std::vector<cuda::Range> first{{memory, 64}}, second{{memory + 64, 64}};
  driver.announce(one, {}, first);
  EXPECT_NO_THROW(driver.announce(other, {}, second));
  EXPECT_NO_THROW(driver.announce(other, range, {}));  // more than a row
  EXPECT_THAT([&] { driver.announce(other, first, {}); },
              ThrowsMessage<InternalError>(HasSubstr("a race")));
}

TEST_F(FakeDriverFinds, AReadOfWhatNothingWrote) {
  EXPECT_THAT([&] { driver.announce(one, range, {}); },
              ThrowsMessage<InternalError>(HasSubstr("nothing has written")));
}

TEST_F(FakeDriverFinds, HostMemoryThatIsTakenForTheDevices) {
  std::byte mine[8];
  EXPECT_THAT([&] { driver.copy(one, Device::Direction::kWithin, memory, mine, 8); },
              ThrowsMessage<InternalError>(HasSubstr("not the device's")));
}

TEST_F(FakeDriverFinds, AWriteToPinnedMemoryThatIsStillCopied) {
  std::fill_n(pinned, 256, std::byte{1});
  driver.copy(one, Device::Direction::kIn, memory, pinned, 256);
  pinned[7] = std::byte{2};
  EXPECT_THAT([&] { driver.wait(one); }, ThrowsMessage<InternalError>(HasSubstr("written to")));
}

TEST_F(FakeDriverFinds, NoFaultInAWriteToPinnedMemoryAfterAnEventBehindTheCopy) {
  std::fill_n(pinned, 256, std::byte{1});
  driver.copy(one, Device::Direction::kIn, memory, pinned, 256);
  driver.record(event, one);
  EXPECT_FALSE(driver.reached(event));
  driver.wait(event);
  EXPECT_TRUE(driver.reached(event));
  pinned[7] = std::byte{2};
  EXPECT_NO_THROW(driver.wait(one));
}

TEST_F(FakeDriverFinds, WhatIsCopiedToPinnedMemoryOnlyAfterAWait) {
  driver.fill_zero(one, memory, 256);
  std::fill_n(pinned, 256, std::byte{1});
  driver.copy(one, Device::Direction::kOut, pinned, memory, 256);
  EXPECT_EQ(pinned[7], std::byte{0xff});
  driver.wait(one);
  EXPECT_EQ(pinned[7], std::byte{0});
}

TEST_F(FakeDriverFinds, PinnedMemoryThatTwoCopiesUse) {
  driver.fill_zero(one, memory, 256);
  driver.copy(one, Device::Direction::kOut, pinned, memory, 256);
  EXPECT_THAT([&] { driver.copy(one, Device::Direction::kIn, memory, pinned + 64, 64); },
              ThrowsMessage<InternalError>(HasSubstr("two copies")));
}

TEST_F(FakeDriverFinds, ACopyThatReachesBeyondThePinnedMemoryInWhichItBegins) {
  std::vector<std::byte> lying(256);
  driver.pin(lying.data(), 128);
  EXPECT_THAT([&] { driver.copy(one, Device::Direction::kIn, memory, lying.data(), 256); },
              ThrowsMessage<InternalError>(HasSubstr("beyond the pinned")));
  driver.unpin(lying.data());
}

TEST_F(FakeDriverFinds, MemoryOfWhichAPartIsPinnedAlready) {
  std::vector<std::byte> lying(256);
  driver.pin(lying.data() + 64, 64);
  EXPECT_THROW(driver.pin(lying.data(), 128), ResourceExhaustedError);
  EXPECT_THROW(driver.pin(lying.data() + 96, 64), ResourceExhaustedError);
  driver.unpin(lying.data() + 64);
}

}  // namespace
}  // namespace cairn
