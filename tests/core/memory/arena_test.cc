#include "core/memory/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace cairn {
namespace {

constexpr std::size_t kHuge = std::size_t{2} << 20;

TEST(Arena, KeepsItsBytesAsItGrowsAndBringsZeros) {
  Arena arena;
  std::size_t filled = 0;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, kHuge - 1, kHuge, kHuge + 1,
                                  5 * kHuge, 9 * kHuge + 17, 40 * kHuge}) {
    arena.grow(bytes);
    ASSERT_GE(arena.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.data()) % 64, 0u);
    const std::byte* data = arena.data();
    EXPECT_TRUE(std::all_of(data, data + filled, [](std::byte each) {
      return each == std::byte{7};
    })) << bytes;
    EXPECT_TRUE(std::all_of(data + filled, data + bytes, [](std::byte each) {
      return each == std::byte{0};
    })) << bytes;
    std::memset(arena.data(), 7, bytes);
    filled = bytes;
  }
  arena.grow(1);
  EXPECT_EQ(arena.bytes(), filled);
}

// As a socket that refers to pages until the other side has read them.
TEST(Arena, TakesItsPagesAtOnceAndKeepsWhatIsThere) {
  Arena arena(4 * kHuge);
  arena.data()[kHuge] = std::byte{7};
  arena.take_pages();
  std::vector<unsigned char> here(4 * kHuge / static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  ASSERT_EQ(mincore(arena.data(), 4 * kHuge, here.data()), 0);
  EXPECT_TRUE(std::ranges::all_of(here, [](unsigned char page) { return (page & 1) != 0; }));
  EXPECT_EQ(arena.data()[kHuge], std::byte{7});
  EXPECT_EQ(arena.data()[kHuge - 1], std::byte{0});
}

TEST(Arena, BehindAPlaceItTakesSmallPages) {
  Arena arena(4 * kHuge);
  arena.data()[0] = std::byte{7};
  arena.take_small_pages(kHuge / 2);
  arena.data()[2 * kHuge] = std::byte{8};
  std::vector<unsigned char> here(kHuge / static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  ASSERT_EQ(mincore(arena.data() + 2 * kHuge, kHuge, here.data()), 0);
  EXPECT_EQ(std::ranges::count_if(here, [](unsigned char page) { return (page & 1) != 0; }), 1);
  EXPECT_EQ(arena.data()[0], std::byte{7});
  EXPECT_EQ(arena.data()[2 * kHuge + 1], std::byte{0});
}

TEST(Arena, WhoWasLentPagesReadsOnWhatHeWasLent) {
  Arena arena(2 * kHuge);
  std::memset(arena.data(), 7, arena.bytes());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  // on both sides of a huge page's edge
  constexpr std::size_t kOffset = kHuge - 5000, kBytes = 10'000;
  const iovec lent{arena.data() + kOffset, kBytes};
  ASSERT_EQ(::vmsplice(ends[1], &lent, 1, 0), static_cast<ssize_t>(kBytes));
  arena.leave_pages(arena.data() + kOffset, kBytes);
  EXPECT_TRUE(std::all_of(arena.data(), arena.data() + arena.bytes(),
                          [](std::byte each) { return each == std::byte{7}; }));
  std::memset(arena.data(), 8, arena.bytes());
  std::vector<std::byte> read(kBytes);
  ASSERT_EQ(::read(ends[0], read.data(), kBytes), static_cast<ssize_t>(kBytes));
  EXPECT_TRUE(
      std::all_of(read.begin(), read.end(), [](std::byte each) { return each == std::byte{7}; }));
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace cairn
