// Division of indices.
#pragma once
#include <cstdint>

#include "core/kernels/cuda/group.h"

namespace cairn::cuda {

// Divides by a number that does not change; 32-bit division where both are small, because 64-bit
// division takes some 100 instructions on a GPU.
struct Divisor {
  std::int64_t by = 1;

  CAIRN_DEVICE std::int64_t divide(std::int64_t n) const {
    if (((n | by) >> 32) == 0)
      return static_cast<std::uint32_t>(n) / static_cast<std::uint32_t>(by);
    return n / by;
  }
  CAIRN_DEVICE std::int64_t remainder(std::int64_t n) const { return n - divide(n) * by; }
};

}  // namespace cairn::cuda
