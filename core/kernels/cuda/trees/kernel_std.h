// The small part of the standard library that kernels compiled by NVRTC use, which ships none.
// It stands for all of the standard headers that they include. The functions are those that nvcc
// takes for the same names, so that the bits are the same.
#pragma once
#ifdef __CUDACC_RTC__

namespace std {

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
using size_t = decltype(sizeof(0));
using uintptr_t = size_t;

template <typename T>
inline constexpr bool is_floating_point_v = false;
template <>
inline constexpr bool is_floating_point_v<float> = true;
template <>
inline constexpr bool is_floating_point_v<double> = true;

template <typename T>
struct make_unsigned;
template <>
struct make_unsigned<int32_t> {
  using type = uint32_t;
};
template <>
struct make_unsigned<int64_t> {
  using type = uint64_t;
};
template <typename T>
using make_unsigned_t = typename make_unsigned<T>::type;

template <typename T>
struct numeric_limits;
template <>
struct numeric_limits<float> {
  static constexpr int digits = 24;
  __device__ static float infinity() { return __int_as_float(0x7f800000); }
};
template <>
struct numeric_limits<double> {
  static constexpr int digits = 53;
};
template <>
struct numeric_limits<uint8_t> {
  static constexpr int digits = 8;
  static constexpr uint8_t min() { return 0; }
  static constexpr uint8_t max() { return 255; }
};
template <>
struct numeric_limits<int32_t> {
  static constexpr int digits = 31;
  static constexpr int32_t min() { return -2147483647 - 1; }
  static constexpr int32_t max() { return 2147483647; }
};
template <>
struct numeric_limits<int64_t> {
  static constexpr int digits = 63;
  static constexpr int64_t min() { return -9223372036854775807LL - 1; }
  static constexpr int64_t max() { return 9223372036854775807LL; }
};

}  // namespace std

#endif
