// The pinned memory through which a queue copies, over the fake driver, which finds memory that is
// written to while it is still copied, and has nothing in the host's memory before a wait.
#include "core/kernels/cuda/runtime/staging.h"

#include <gmock/gmock.h>

#include <numeric>

#include "tests/core/kernels/cuda/runtime/fake_driver.h"

namespace cairn {
namespace {

using cuda::Staging;

struct CudaStaging : ::testing::Test {
  testing::FakeDriver driver;
  cuda::Stream stream = driver.make_stream();
  std::vector<std::byte*> memory;
  std::unique_ptr<Staging> staging = std::make_unique<Staging>(driver);

  ~CudaStaging() override {
    driver.wait(stream);
    staging = nullptr;
    for (std::byte* each : memory) driver.release(each, stream);
    driver.destroy(stream);
  }
  std::byte* on_device(std::size_t bytes) {
    return memory.emplace_back(driver.allocate(bytes, stream));
  }
  static std::vector<std::byte> numbers(std::size_t bytes, unsigned first) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      made[i] = static_cast<std::byte>(first + i * 7 + i / 251);
    return made;
  }
};

TEST_F(CudaStaging, WhatIsSentMayChangeAtOnce) {
  std::vector<std::byte> from = numbers(1000, 1);
  const std::vector<std::byte> sent = from;
  std::byte* const to = on_device(1000);
  staging->send(stream, to, from.data(), from.size());
  std::ranges::fill(from, std::byte{0});
  std::vector<std::byte> back(1000);
  staging->fetch(stream, back.data(), to, back.size());
  driver.wait(stream);
  staging->deliver();
  EXPECT_EQ(back, sent);
}

TEST_F(CudaStaging, SeveralValuesArriveWithOneWait) {
  std::byte* const at = on_device(3000);
  const std::vector<std::byte> sent = numbers(3000, 2);
  staging->send(stream, at, sent.data(), sent.size());
  std::vector<std::byte> back(3000);
  for (std::size_t i = 0; i < 3000; i += 100) staging->fetch(stream, &back[i], at + i, 100);
  EXPECT_EQ(driver.counts().waits, 0);
  driver.wait(stream);
  staging->deliver();
  EXPECT_EQ(back, sent);
  EXPECT_EQ(driver.counts().blocking_copies, 0);
}

TEST_F(CudaStaging, WarmStepsPinNothingMore) {
  std::byte* const at = on_device(4096);
  const std::vector<std::byte> sent = numbers(4096, 3);
  std::vector<std::byte> back(4096);
  for (int step = 0; step < 1000; ++step) {
    staging->send(stream, at, sent.data(), sent.size());
    staging->fetch(stream, back.data(), at, back.size());
    driver.wait(stream);
    staging->deliver();
  }
  EXPECT_EQ(driver.counts().pinned_blocks, 1);
}

// More than the ring holds, in both directions, without a wait by the caller in between.
TEST_F(CudaStaging, ACopyLargerThanTheRingArrivesWholeAndPinsNoMoreThanTheBound) {
  constexpr std::size_t kBytes = (Staging::kBlocksMax + 3) * Staging::kBlockBytes + 77;
  std::byte* const at = on_device(kBytes);
  std::vector<std::byte> from = numbers(kBytes, 4);
  const std::vector<std::byte> sent = from;
  staging->send(stream, at, from.data(), kBytes);
  std::ranges::fill(from, std::byte{0});
  std::vector<std::byte> back(kBytes);
  staging->fetch(stream, back.data(), at, kBytes);
  driver.wait(stream);
  staging->deliver();
  EXPECT_TRUE(back == sent);
  EXPECT_EQ(driver.counts().pinned_blocks, static_cast<int>(Staging::kBlocksMax));
}

TEST_F(CudaStaging, WhatWasDroppedIsNotWrittenTo) {
  std::byte* const at = on_device(100);
  const std::vector<std::byte> sent = numbers(100, 5);
  staging->send(stream, at, sent.data(), sent.size());
  std::vector<std::byte> dropped(100), wanted(100);
  staging->fetch(stream, dropped.data(), at, 100);
  staging->drop();
  staging->fetch(stream, wanted.data(), at, 100);
  driver.wait(stream);
  staging->deliver();
  EXPECT_EQ(dropped, std::vector<std::byte>(100));
  EXPECT_EQ(wanted, sent);
}

// The event behind a block says nothing of another stream's copies.
TEST_F(CudaStaging, CopiesOfTwoStreamsShareNoBlock) {
  const cuda::Stream other = driver.make_stream();
  std::byte* const here = on_device(64);
  std::byte* const there = driver.allocate(64, other);
  const std::vector<std::byte> sent = numbers(64, 6);
  staging->send(stream, here, sent.data(), 64);
  staging->send(other, there, sent.data(), 64);
  EXPECT_EQ(driver.counts().pinned_blocks, 2);
  driver.wait(other);
  driver.release(there, other);
  driver.destroy(other);
}

}  // namespace
}  // namespace cairn
