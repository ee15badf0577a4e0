// What matrix products are computed in.
#pragma once
#include <cstdint>

namespace cairn {

enum class Arithmetic : std::uint8_t {
  kFloat32,
  // Operands rounded to bfloat16, products summed in float32; everything else stays float32, variables and their updates with it. Twice
  // as fast where the processor has it (AVX-512 BF16, AMX), and no faster, but the same numbers to within the order of summing, where not.
  kBfloat16,
};

}  // namespace cairn
