#include <array>
#include <type_traits>

#include "core/kernels/cpu/elementwise_table.h"
#include "core/kernels/to_integer.h"

namespace cairn {
namespace {

// A storage type's element and its arithmetic value.
template <DType kType>
struct Stored;
template <>
struct Stored<DType::kFloat32> {
  using Raw = float;
  static float load(Raw x) { return x; }
};
template <>
struct Stored<DType::kFloat64> {
  using Raw = double;
  static double load(Raw x) { return x; }
};
template <>
struct Stored<DType::kInt32> {
  using Raw = std::int32_t;
  static Raw load(Raw x) { return x; }
};
template <>
struct Stored<DType::kInt64> {
  using Raw = std::int64_t;
  static Raw load(Raw x) { return x; }
};
template <>
struct Stored<DType::kBool> {
  using Raw = unsigned char;
  static Raw load(Raw x) { return x; }
};
template <>
struct Stored<DType::kUint8> {
  using Raw = std::uint8_t;
  static Raw load(Raw x) { return x; }
};
template <>
struct Stored<DType::kBfloat16> {
  using Raw = std::uint16_t;
  static float load(Raw x) { return from_bfloat16(x); }
};
template <>
struct Stored<DType::kFloat16> {
  using Raw = std::uint16_t;
  static float load(Raw x) { return from_float16(x); }
};

// A value of any dtype becomes bool by "not zero", so that NaN is true and -0 is false, as in C++.
template <DType kTo, typename From>
typename Stored<kTo>::Raw convert(From x) {
  if constexpr (kTo == DType::kFloat32)
    return static_cast<float>(x);
  else if constexpr (kTo == DType::kFloat64)
    return static_cast<double>(x);
  else if constexpr (kTo == DType::kBool)
    return x != 0 ? 1 : 0;
  else if constexpr (kTo == DType::kBfloat16)
    return to_bfloat16(static_cast<float>(x));
  else if constexpr (kTo == DType::kFloat16)
    return to_float16(static_cast<float>(x));
  else
    return to_integer<typename Stored<kTo>::Raw>(x);
}

template <DType kFrom, DType kTo>
void cast_block(const std::byte* a, const std::byte*, const std::byte*, std::byte* out,
                std::size_t n) {
  const auto* __restrict in = reinterpret_cast<const typename Stored<kFrom>::Raw*>(a);
  auto* __restrict to = reinterpret_cast<typename Stored<kTo>::Raw*>(out);
  for (std::size_t i = 0; i < n; ++i) to[i] = convert<kTo>(Stored<kFrom>::load(in[i]));
}

template <int kFrom, int kTo>
constexpr BlockOp cast_of() {
  constexpr int kText = static_cast<int>(DType::kString);
  if constexpr (kFrom == kText || kTo == kText)
    return nullptr;
  else
    return cast_block<static_cast<DType>(kFrom), static_cast<DType>(kTo)>;
}
// All pairs of dtypes but string are instantiated into a table, indexed by their numbers.
template <int kFrom, int... kTo>
constexpr std::array<BlockOp, kDTypeCount> casts_from(std::integer_sequence<int, kTo...>) {
  return {cast_of<kFrom, kTo>()...};
}
template <int... kFrom>
constexpr std::array<std::array<BlockOp, kDTypeCount>, kDTypeCount> all_casts(
    std::integer_sequence<int, kFrom...> all) {
  return {casts_from<kFrom>(all)...};
}
constexpr auto kCasts = all_casts(std::make_integer_sequence<int, kDTypeCount>{});

}  // namespace

BlockOp find_cast(DType from, DType to) {
  if (from == DType::kString || to == DType::kString)
    throw InvalidArgumentError("no cast from or to string");
  return kCasts[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

}  // namespace cairn
