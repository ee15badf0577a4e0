// ElementGenerator: a function that Dataset::from_generator() calls for one element after another.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "core/tensor/element.h"

namespace cairn {

// The next element; none at the end. It is not called again after that.
using ElementGenerator = std::function<std::optional<Element>()>;

// For Dataset::prefetch(): as many elements as prove to be wanted.
inline constexpr std::int64_t kAutotune = -1;

}  // namespace cairn
