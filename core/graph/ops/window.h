// How a sliding window meets one axis of an image: what type rules, kernels and recording agree on.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/error.h"
#include "core/graph/ops_model.h"

namespace cairn {

struct Window {
  // of each number: products of them stay far from overflow
  static constexpr std::int64_t kMax = 1 << 20;
  std::int64_t size = 1, stride = 1, dilation = 1;
  std::int64_t reach() const { return (size - 1) * dilation + 1; }
};

struct Slide {
  std::int64_t positions = 0;
  std::int64_t before = 0, after = 0;  // zeros that stand around the axis
};

// InvalidArgument: numbers out of range, or a window that does not fit.
inline Slide slide(std::int64_t in, const Window& window, Padding padding) {
  for (std::int64_t n : {window.size, window.stride, window.dilation})
    if (n < 1 || n > Window::kMax)
      throw InvalidArgumentError(str("a window's size, stride or dilation of ", n));
  if (padding == Padding::kSame) {
    std::int64_t positions = in / window.stride + (in % window.stride != 0 ? 1 : 0);
    std::int64_t zeros =
        std::max<std::int64_t>((positions - 1) * window.stride + window.reach() - in, 0);
    return {positions, zeros / 2, zeros - zeros / 2};
  }
  if (window.reach() > in)
    throw InvalidArgumentError(str("a window that reaches over ", window.reach(),
                                   " does not fit into ", in, " (see Padding::kSame)"));
  return {(in - window.reach()) / window.stride + 1, 0, 0};
}

}  // namespace cairn
