// The range that predictions or labels of a loss or a metric must lie in, as steps check it.
#pragma once
#include <limits>
#include <string>

#include "core/graph/array.h"

namespace cairn::nn {

struct ValueRange {
  float low = std::numeric_limits<float>::lowest();
  float high = std::numeric_limits<float>::max();

  bool is_bounded() const { return low > std::numeric_limits<float>::lowest(); }
};
inline constexpr ValueRange kProbabilityRange{0, 1};

// x, of any numeric dtype, as float32; a step that finds an element outside of the range (by more
// than rounding) ends with InvalidArgument: "WHAT is VALUE, outside of [LOW, HIGH]; CURE".
Array in_range(const Array& x, const ValueRange& range, const std::string& what,
               const std::string& cure);

}  // namespace cairn::nn
