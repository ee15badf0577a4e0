// The arithmetic in which matrix products are computed.
#pragma once
#include <cstdint>

namespace cairn {

enum class Arithmetic : std::uint8_t {
  kFloat32,
  // Operands are rounded to bfloat16 and products summed in float32; everything else stays float32,
  // variables and their updates included. Meant for processors that compute it (AVX-512 BF16, AMX);
  // others give the same numbers, to within the order of summing, and gain nothing.
  kBfloat16,
};

}  // namespace cairn
