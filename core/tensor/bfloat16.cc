#include "core/tensor/bfloat16.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/base/clones.h"

namespace cairn {
namespace {

// The bfloat16 in the high half of the result. As to_bfloat16(), here inline, so that the compiler
// can vectorise the loops below.
//
// Adding 0x7fff and the lowest bit that stays carries into that bit exactly when the bits that go
// are more than half, or are half and the bit is odd: round to nearest, ties to even. A NaN whose
// set bits all lie in the low half would be rounded to infinity, so the quiet bit is set instead.
CAIRN_INLINE std::uint32_t rounded_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return ((bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : rounded) & 0xffff0000;
}

}  // namespace

CAIRN_CLONES void narrow_to_bfloat16(const float* wide, std::size_t n, std::byte* narrow) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto half = static_cast<std::uint16_t>(rounded_bits(wide[i]) >> 16);
    std::memcpy(narrow + 2 * i, &half, 2);
  }
}

CAIRN_CLONES void widen_from_bfloat16(const std::byte* narrow, std::size_t n, float* wide) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t half;
    std::memcpy(&half, narrow + 2 * i, 2);
    wide[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  }
}

CAIRN_CLONES void round_to_bfloat16(const float* from, std::size_t n, float* to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = std::bit_cast<float>(rounded_bits(from[i]));
}

}  // namespace cairn
