// A check of a range, beside check_numerics() (core/graph/ops.h), whose conventions hold here.
#pragma once
#include <string>

#include "core/graph/array.h"

namespace cairn {

// The value if every element is in [low, high]. Run on another one: InvalidArgument with `what`,
// the element, the step and then `cure`; for an element that is not finite, the message of
// check_numerics().
Array check_range(const Array& x, float low, float high, const std::string& what,
                  const std::string& cure);

}  // namespace cairn
