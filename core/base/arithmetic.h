// What matrix products are computed in.
#pragma once
#include <cstdint>

namespace cairn {

enum class Arithmetic : std::uint8_t {
  kFloat32,
  // Operands rounded to bfloat16, products summed in float32; everything else stays float32,
  // variables and their updates with it. Meant for processors that have it (AVX-512 BF16, AMX);
  // others give the same numbers, to within the order of summing, and no gain.
  kBfloat16,
};

}  // namespace cairn
