// How two numbers become one in reductions and scatters, on every device: constexpr, so that a
// GPU's compiler takes them as they are. kStart leaves any other number as it is.
#pragma once
#include <limits>
#include <type_traits>

namespace cairn::fold {

// Integers wrap around, so that their sums and products are made unsigned.
template <typename T>
using Modular = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                            std::type_identity<T>>::type;

template <typename T>
struct Sum {
  static constexpr T kStart = 0;
  static constexpr T apply(T a, T b) {
    return static_cast<T>(static_cast<Modular<T>>(a) + static_cast<Modular<T>>(b));
  }
};
template <typename T>
struct Difference {
  static constexpr T apply(T a, T b) {
    return static_cast<T>(static_cast<Modular<T>>(a) - static_cast<Modular<T>>(b));
  }
};
template <typename T>
struct Product {
  static constexpr T kStart = 1;
  static constexpr T apply(T a, T b) {
    return static_cast<T>(static_cast<Modular<T>>(a) * static_cast<Modular<T>>(b));
  }
};
// A NaN wins, as in the reference.
template <typename T>
struct Max {
  static constexpr T kStart = std::numeric_limits<T>::has_infinity
                                  ? -std::numeric_limits<T>::infinity()
                                  : std::numeric_limits<T>::lowest();
  static constexpr T apply(T a, T b) { return b != b || b > a ? b : a; }
};
template <typename T>
struct Min {
  static constexpr T kStart = std::numeric_limits<T>::has_infinity
                                  ? std::numeric_limits<T>::infinity()
                                  : std::numeric_limits<T>::max();
  static constexpr T apply(T a, T b) { return b != b || b < a ? b : a; }
};
template <typename T>
struct Last {
  static constexpr T apply(T, T b) { return b; }
};

}  // namespace cairn::fold
