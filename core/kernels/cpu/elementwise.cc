#include "core/kernels/cpu/elementwise.h"

#include <cmath>
#include <unordered_map>

#include "core/kernels/cpu/elementwise_table.h"
#include "core/kernels/cpu/math.h"

namespace cairn {
namespace {

// One function per line: name, input type, output type, expression in x (and y, z). They are
// functions and not templates, so that the compiler clones them for the instruction sets.
// Expressions without a branch or a call become vector code; those that call <cmath> (sin, erf, pow
// and others) or may throw are loops of scalars.
#define CAIRN_UNARY(NAME, IN, OUT, EXPRESSION)                                                   \
  CAIRN_CLONES void NAME(const std::byte* a, const std::byte*, const std::byte*, std::byte* out, \
                         std::size_t n) {                                                        \
    const IN* __restrict px = reinterpret_cast<const IN*>(a);                                    \
    OUT* __restrict po = reinterpret_cast<OUT*>(out);                                            \
    for (std::size_t i = 0; i < n; ++i) {                                                        \
      IN x = px[i];                                                                              \
      po[i] = static_cast<OUT>(EXPRESSION);                                                      \
    }                                                                                            \
  }
#define CAIRN_BINARY(NAME, IN, OUT, EXPRESSION)                                                    \
  CAIRN_CLONES void NAME(const std::byte* a, const std::byte* b, const std::byte*, std::byte* out, \
                         std::size_t n) {                                                          \
    const IN* __restrict px = reinterpret_cast<const IN*>(a);                                      \
    const IN* __restrict py = reinterpret_cast<const IN*>(b);                                      \
    OUT* __restrict po = reinterpret_cast<OUT*>(out);                                              \
    for (std::size_t i = 0; i < n; ++i) {                                                          \
      IN x = px[i], y = py[i];                                                                     \
      po[i] = static_cast<OUT>(EXPRESSION);                                                        \
    }                                                                                              \
  }
#define CAIRN_SELECT(NAME, T)                                                        \
  CAIRN_CLONES void NAME(const std::byte* a, const std::byte* b, const std::byte* c, \
                         std::byte* out, std::size_t n) {                            \
    const Bool* __restrict pc = reinterpret_cast<const Bool*>(a);                    \
    const T* __restrict px = reinterpret_cast<const T*>(b);                          \
    const T* __restrict py = reinterpret_cast<const T*>(c);                          \
    T* __restrict po = reinterpret_cast<T*>(out);                                    \
    for (std::size_t i = 0; i < n; ++i) {                                            \
      T x = px[i], y = py[i];                                                        \
      po[i] = pc[i] != 0 ? x : y;                                                    \
    }                                                                                \
  }

using Bool = unsigned char;
using I32 = std::int32_t;
using I64 = std::int64_t;

// Signed overflow wraps around, as in the reference. In C++ it is undefined, so the arithmetic is
// done unsigned.
template <typename T>
using Wide = std::make_unsigned_t<T>;
template <typename T>
CAIRN_INLINE T wrap_add(T x, T y) {
  return static_cast<T>(static_cast<Wide<T>>(x) + static_cast<Wide<T>>(y));
}
template <typename T>
CAIRN_INLINE T wrap_sub(T x, T y) {
  return static_cast<T>(static_cast<Wide<T>>(x) - static_cast<Wide<T>>(y));
}
template <typename T>
CAIRN_INLINE T wrap_mul(T x, T y) {
  return static_cast<T>(static_cast<Wide<T>>(x) * static_cast<Wide<T>>(y));
}

// div truncates towards zero; floor_mod takes the sign of the divisor. A zero divisor would trap,
// as would the lowest integer over -1, whose quotient does not fit: the one is an error, the other
// wraps around.
template <typename T>
T integer_div(T x, T y) {
  if (y == 0) throw InvalidArgumentError("an integer is divided by zero");
  return y == -1 ? wrap_sub<T>(0, x) : static_cast<T>(x / y);  // the lowest integer over -1 wraps
}
template <typename T>
T integer_mod(T x, T y) {
  if (y == 0) throw InvalidArgumentError("an integer is divided by zero");
  if (y == -1) return 0;
  T r = static_cast<T>(x % y);
  return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(r + y) : r;
}
float float_mod(float x, float y) {
  float r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
// A NaN on either side comes through, as in the reference.
CAIRN_INLINE float float_max(float x, float y) {
  return x != x ? x : (y != y ? y : (x > y ? x : y));
}
CAIRN_INLINE float float_min(float x, float y) {
  return x != x ? x : (y != y ? y : (x < y ? x : y));
}

CAIRN_UNARY(neg_f, float, float, -x)
CAIRN_UNARY(neg_i, I32, I32, wrap_sub<I32>(0, x))
CAIRN_UNARY(neg_l, I64, I64, wrap_sub<I64>(0, x))
CAIRN_UNARY(abs_f, float, float, std::fabs(x))
CAIRN_UNARY(abs_i, I32, I32, x < 0 ? wrap_sub<I32>(0, x) : x)
CAIRN_UNARY(abs_l, I64, I64, x < 0 ? wrap_sub<I64>(0, x) : x)
CAIRN_UNARY(exp_f, float, float, math::exp(x))
CAIRN_UNARY(expm1_f, float, float, std::expm1(x))
CAIRN_UNARY(sin_f, float, float, std::sin(x))
CAIRN_UNARY(cos_f, float, float, std::cos(x))
CAIRN_UNARY(erf_f, float, float, std::erf(x))
CAIRN_UNARY(erfc_f, float, float, std::erfc(x))
CAIRN_UNARY(log_f, float, float, math::log(x))
CAIRN_UNARY(log1p_f, float, float, math::log1p(x))
CAIRN_UNARY(sqrt_f, float, float, std::sqrt(x))
CAIRN_UNARY(rsqrt_f, float, float, 1.0f / std::sqrt(x))
CAIRN_UNARY(square_f, float, float, x* x)
CAIRN_UNARY(square_i, I32, I32, wrap_mul<I32>(x, x))
CAIRN_UNARY(square_l, I64, I64, wrap_mul<I64>(x, x))
CAIRN_UNARY(reciprocal_f, float, float, 1.0f / x)
CAIRN_UNARY(sigmoid_f, float, float, math::sigmoid(x))
CAIRN_UNARY(tanh_f, float, float, math::tanh(x))
CAIRN_UNARY(relu_f, float, float, x != x ? x : (x > 0.0f ? x : 0.0f))
CAIRN_UNARY(softplus_f, float, float, math::softplus(x))
CAIRN_UNARY(sign_f, float, float, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x))
CAIRN_UNARY(floor_f, float, float, std::floor(x))
CAIRN_UNARY(ceil_f, float, float, std::ceil(x))
CAIRN_UNARY(round_f, float, float, std::nearbyint(x))
CAIRN_UNARY(is_finite_f, float, Bool, (std::fabs(x) < math::infinity() ? 1 : 0))
CAIRN_UNARY(logical_not_b, Bool, Bool, x == 0 ? 1 : 0)

CAIRN_BINARY(add_f, float, float, x + y)
CAIRN_BINARY(add_i, I32, I32, wrap_add(x, y))
CAIRN_BINARY(add_l, I64, I64, wrap_add(x, y))
CAIRN_BINARY(sub_f, float, float, x - y)
CAIRN_BINARY(sub_i, I32, I32, wrap_sub(x, y))
CAIRN_BINARY(sub_l, I64, I64, wrap_sub(x, y))
CAIRN_BINARY(mul_f, float, float, x* y)
CAIRN_BINARY(mul_i, I32, I32, wrap_mul(x, y))
CAIRN_BINARY(mul_l, I64, I64, wrap_mul(x, y))
CAIRN_BINARY(div_f, float, float, x / y)
CAIRN_BINARY(div_i, I32, I32, integer_div(x, y))
CAIRN_BINARY(div_l, I64, I64, integer_div(x, y))
CAIRN_BINARY(floor_mod_f, float, float, float_mod(x, y))
CAIRN_BINARY(floor_mod_i, I32, I32, integer_mod(x, y))
CAIRN_BINARY(floor_mod_l, I64, I64, integer_mod(x, y))
CAIRN_BINARY(maximum_f, float, float, float_max(x, y))
CAIRN_BINARY(maximum_i, I32, I32, x > y ? x : y)
CAIRN_BINARY(maximum_l, I64, I64, x > y ? x : y)
CAIRN_BINARY(minimum_f, float, float, float_min(x, y))
CAIRN_BINARY(minimum_i, I32, I32, x < y ? x : y)
CAIRN_BINARY(minimum_l, I64, I64, x < y ? x : y)
CAIRN_BINARY(pow_f, float, float, std::pow(x, y))
CAIRN_BINARY(xent_f, float, float, math::sigmoid_cross_entropy(x, y))

// Comparisons and `where` for one type. A comparison with NaN is false but for not_equal.
#define CAIRN_COMPARISONS(SUFFIX, T)                    \
  CAIRN_BINARY(equal_##SUFFIX, T, Bool, x == y)         \
  CAIRN_BINARY(not_equal_##SUFFIX, T, Bool, x != y)     \
  CAIRN_BINARY(less_##SUFFIX, T, Bool, x < y)           \
  CAIRN_BINARY(less_equal_##SUFFIX, T, Bool, x <= y)    \
  CAIRN_BINARY(greater_##SUFFIX, T, Bool, x > y)        \
  CAIRN_BINARY(greater_equal_##SUFFIX, T, Bool, x >= y) \
  CAIRN_SELECT(where_##SUFFIX, T)
CAIRN_COMPARISONS(f, float)
CAIRN_COMPARISONS(i, I32)
CAIRN_COMPARISONS(l, I64)
CAIRN_COMPARISONS(b, Bool)
CAIRN_BINARY(logical_and_b, Bool, Bool, (x & y))
CAIRN_BINARY(logical_or_b, Bool, Bool, (x | y))

struct Entry {
  std::string_view op;
  // by the dtype of the values: float32, int32, int64, bool and uint8
  BlockOp f = nullptr, i = nullptr, l = nullptr, b = nullptr;
};

// The table of operations. A null entry is a dtype that the operation does not have.
constexpr Entry kEntries[] = {
    {"neg", neg_f, neg_i, neg_l},
    {"abs", abs_f, abs_i, abs_l},
    {"exp", exp_f},
    {"expm1", expm1_f},
    {"sin", sin_f},
    {"cos", cos_f},
    {"erf", erf_f},
    {"erfc", erfc_f},
    {"log", log_f},
    {"log1p", log1p_f},
    {"sqrt", sqrt_f},
    {"rsqrt", rsqrt_f},
    {"square", square_f, square_i, square_l},
    {"reciprocal", reciprocal_f},
    {"sigmoid", sigmoid_f},
    {"tanh", tanh_f},
    {"relu", relu_f},
    {"softplus", softplus_f},
    {"sign", sign_f},
    {"floor", floor_f},
    {"ceil", ceil_f},
    {"round", round_f},
    {"is_finite", is_finite_f},
    {"logical_not", nullptr, nullptr, nullptr, logical_not_b},
    {"add", add_f, add_i, add_l},
    {"sub", sub_f, sub_i, sub_l},
    {"mul", mul_f, mul_i, mul_l},
    {"div", div_f, div_i, div_l},
    {"floor_mod", floor_mod_f, floor_mod_i, floor_mod_l},
    {"maximum", maximum_f, maximum_i, maximum_l},
    {"minimum", minimum_f, minimum_i, minimum_l},
    {"pow", pow_f},
    {"equal", equal_f, equal_i, equal_l, equal_b},
    {"not_equal", not_equal_f, not_equal_i, not_equal_l, not_equal_b},
    {"less", less_f, less_i, less_l, less_b},
    {"less_equal", less_equal_f, less_equal_i, less_equal_l, less_equal_b},
    {"greater", greater_f, greater_i, greater_l, greater_b},
    {"greater_equal", greater_equal_f, greater_equal_i, greater_equal_l, greater_equal_b},
    {"logical_and", nullptr, nullptr, nullptr, logical_and_b},
    {"logical_or", nullptr, nullptr, nullptr, logical_or_b},
    {"where", where_f, where_i, where_l, where_b},
    {"sigmoid_cross_entropy_with_logits", xent_f},
};

const Entry* find_entry(std::string_view op) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const Entry*> all;
    for (const Entry& entry : kEntries) all.emplace(entry.op, &entry);
    return all;
  }();
  auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

// bool and uint8 share their kernels: both are one byte, and a bool holds only 0 and 1.
BlockOp typed(const Entry& entry, DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return entry.f;
    case DType::kInt32: return entry.i;
    case DType::kInt64: return entry.l;
    case DType::kBool:
    case DType::kUint8: return entry.b;
    default: return nullptr;
  }
}

}  // namespace

BlockOp find_block_op(std::string_view op, std::span<const DType> inputs, DType output) {
  if (op == "cast") return find_cast(inputs[0], output);
  const Entry* entry = find_entry(op);
  // The last input decides: the first of `where` is its condition, and a comparison makes a bool.
  BlockOp found = entry == nullptr ? nullptr : typed(*entry, inputs.back());
  if (found == nullptr)
    throw InvalidArgumentError(str("no kernel of ", op, " for ", dtype_name(inputs.back())));
  return found;
}

}  // namespace cairn
