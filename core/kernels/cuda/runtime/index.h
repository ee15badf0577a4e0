// Finding elements of values that are stretched or permuted: the source of each element of a
// row-major result, by strides.
#pragma once
#include <cstdint>

#include "core/base/error.h"
#include "core/kernels/cpu/strided.h"
#include "core/kernels/cuda/runtime/group.h"

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

struct Strides {
  static constexpr int kRankMax = 8;
  int rank = 1;
  std::int64_t dims[kRankMax] = {1};
  std::int64_t strides[kRankMax] = {};

  // Axes that are one run in the source are joined already.
  //   Errors  Unimplemented: more than kRankMax axes are left.
  static Strides of(const StridedCopy& copy) {
    if (copy.dims.size() > kRankMax)
      throw UnimplementedError(str("a value stretched or permuted along ", copy.dims.size(),
                                   " axes; a GPU does at most ", kRankMax));
    Strides made;
    made.rank = static_cast<int>(copy.dims.size());
    for (int i = 0; i < made.rank; ++i) {
      made.dims[i] = copy.dims[static_cast<std::size_t>(i)];
      made.strides[i] = copy.strides[static_cast<std::size_t>(i)];
    }
    return made;
  }

  CAIRN_DEVICE std::int64_t source(std::int64_t element) const {
    std::int64_t at = 0;
    for (int axis = rank - 1; axis > 0; --axis) {
      const std::int64_t rest = Divisor{dims[axis]}.divide(element);
      at += (element - rest * dims[axis]) * strides[axis];
      element = rest;
    }
    return at + element * strides[0];
  }
};

}  // namespace cairn::cuda
