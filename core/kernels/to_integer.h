// A number as an integer, as cast() has it on every device.
#pragma once
#include <limits>
#include <type_traits>

namespace cairn {

// One that does not fit becomes the nearest bound, NaN 0. The conversion of such a number is
// undefined in C++, so it is saturated by hand. Values are compared as they are: the integer's
// bounds, rounded outward, are the first values that do not fit. (255 is a float, so the first
// value that a byte cannot hold is one more; a double holds the bounds of 32 bits, too.)
template <typename To, typename From>
constexpr To to_integer(From x) {
  if constexpr (std::is_floating_point_v<From>) {
    constexpr bool kExact = std::numeric_limits<To>::digits <= std::numeric_limits<From>::digits;
    constexpr From kAbove = static_cast<From>(std::numeric_limits<To>::max()) + (kExact ? 1 : 0);
    if (!(x == x)) return 0;
    if (x >= kAbove) return std::numeric_limits<To>::max();
    if (x <= static_cast<From>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
  }
  return static_cast<To>(x);
}

}  // namespace cairn
