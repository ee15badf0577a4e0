#include "core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace cairn {
namespace {

constexpr std::size_t kHuge = std::size_t{2} << 20;

TEST(Arena, KeepsItsBytesAsItGrowsAndBringsZeros) {
  Arena arena;
  std::size_t filled = 0;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, kHuge - 1, kHuge, kHuge + 1, 5 * kHuge, 9 * kHuge + 17, 40 * kHuge}) {
    arena.grow(bytes);
    ASSERT_GE(arena.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.data()) % 64, 0u);
    const std::byte* data = arena.data();
    EXPECT_TRUE(std::all_of(data, data + filled, [](std::byte each) { return each == std::byte{7}; })) << bytes;
    EXPECT_TRUE(std::all_of(data + filled, data + bytes, [](std::byte each) { return each == std::byte{0}; })) << bytes;
    std::memset(arena.data(), 7, bytes);
    filled = bytes;
  }
  arena.grow(1);
  EXPECT_EQ(arena.bytes(), filled);
}

}  // namespace
}  // namespace cairn
