// The order of top_k, on every device: constexpr, so that a GPU's compiler takes it as it is.
#pragma once
#include <bit>
#include <cstdint>

namespace cairn {

// The larger of two numbers has the larger key; equal numbers, 0 and -0 among them, have equal
// keys. A NaN has the key 0, below all others.
constexpr std::uint64_t order_key(float x) {
  if (x != x) return 0;
  const std::uint32_t bits = x == 0 ? 0 : std::bit_cast<std::uint32_t>(x);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
constexpr std::uint64_t order_key(std::int64_t x) {
  return static_cast<std::uint64_t>(x) ^ (std::uint64_t{1} << 63);
}
constexpr std::uint64_t order_key(std::int32_t x) { return order_key(std::int64_t{x}); }

}  // namespace cairn
