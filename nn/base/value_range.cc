#include "nn/base/value_range.h"

#include "core/graph/ops/ops_check.h"
#include "nn/base/layer.h"

namespace cairn::nn {
namespace {

constexpr float kRounding = 1e-5f;  // how far from 1 a sum of a few probabilities may be

}  // namespace

Array in_range(const Array& x, const ValueRange& range, const std::string& what,
               const std::string& cure) {
  if (!range.is_bounded()) return to_float(x);
  const bool open = range.high == std::numeric_limits<float>::max();
  const std::string where =
      open ? str(", below ", range.low) : str(", outside of [", range.low, ", ", range.high, "]");
  return check_range(to_float(x), range.low - kRounding, open ? range.high : range.high + kRounding,
                     what, where + "; " + cure);
}

}  // namespace cairn::nn
