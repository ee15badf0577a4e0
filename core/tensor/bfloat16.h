// bfloat16 in bulk: a float32 without its 16 low bits, rounded to nearest, ties to even; a NaN
// stays a NaN. It keeps float32's exponent, so that nothing overflows, and 8 bits of significand.
//   Source  "BFLOAT16 - Hardware Numerics Definition", Intel, 2018.
#pragma once
#include <cstddef>

namespace cairn {

// `n` values. The narrow side has 2 bytes each and needs no alignment; the ranges do not overlap.
// Thread: any.
void narrow_to_bfloat16(const float* wide, std::size_t n, std::byte* narrow);
void widen_from_bfloat16(const std::byte* narrow, std::size_t n, float* wide);
// Rounds each value to the float32 that it would be as bfloat16.
void round_to_bfloat16(const float* from, std::size_t n, float* to);

}  // namespace cairn
