// The elementwise operations: their codes, what each does to an element, and to four at a time, as
// the interpreter computes them.
//
// A register holds any dtype of at most its size. Semantics are those of the CPU's kernels
// (core/kernels/cpu/elementwise.cc): integers wrap around, a NaN on either side comes through, a
// comparison with NaN is false but for not_equal.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/kernels/cuda/runtime/group.h"

namespace cairn::cuda {

inline constexpr int kLanes = 4;  // elements that a thread computes side by side

// clang-format off
// name, input type, output type, expression in x (and y). A name is the operation's with the letter
// of its values' dtype: f, i, l and b stand for float32, int32, int64, and bool or uint8. Functions
// of math.h go by their names for float, which nvcc, NVRTC and the host's compiler all know.
#define CAIRN_CUDA_UNARY(F)                                                              \
  F(neg_f, float, float, -x)                                                             \
  F(neg_i, std::int32_t, std::int32_t, wrap_sub<std::int32_t>(0, x))                     \
  F(neg_l, std::int64_t, std::int64_t, wrap_sub<std::int64_t>(0, x))                     \
  F(abs_f, float, float, fabsf(x))                                                       \
  F(abs_i, std::int32_t, std::int32_t, x < 0 ? wrap_sub<std::int32_t>(0, x) : x)         \
  F(abs_l, std::int64_t, std::int64_t, x < 0 ? wrap_sub<std::int64_t>(0, x) : x)         \
  F(exp_f, float, float, expf(x))                                                        \
  F(expm1_f, float, float, expm1f(x))                                                    \
  F(sin_f, float, float, sinf(x))                                                        \
  F(cos_f, float, float, cosf(x))                                                        \
  F(erf_f, float, float, erff(x))                                                        \
  F(erfc_f, float, float, erfcf(x))                                                      \
  F(log_f, float, float, logf(x))                                                        \
  F(log1p_f, float, float, log1pf(x))                                                    \
  F(sqrt_f, float, float, sqrtf(x))                                                      \
  F(rsqrt_f, float, float, 1.0f / sqrtf(x))                                              \
  F(square_f, float, float, x * x)                                                       \
  F(square_i, std::int32_t, std::int32_t, wrap_mul(x, x))                                \
  F(square_l, std::int64_t, std::int64_t, wrap_mul(x, x))                                \
  F(reciprocal_f, float, float, 1.0f / x)                                                \
  F(sigmoid_f, float, float, 1.0f / (1.0f + expf(-x)))                                   \
  F(tanh_f, float, float, tanhf(x))                                                      \
  F(relu_f, float, float, x != x ? x : (x > 0.0f ? x : 0.0f))                            \
  F(softplus_f, float, float, softplus(x))                                               \
  F(sign_f, float, float, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x))                      \
  F(floor_f, float, float, floorf(x))                                                    \
  F(ceil_f, float, float, ceilf(x))                                                      \
  F(round_f, float, float, rintf(x))                                                     \
  F(is_finite_f, float, Bool, fabsf(x) < std::numeric_limits<float>::infinity() ? 1 : 0) \
  F(logical_not_b, Bool, Bool, x == 0 ? 1 : 0)

#define CAIRN_CUDA_COMPARISONS(F, SUFFIX, T)            \
  F(equal_##SUFFIX, T, Bool, x == y ? 1 : 0)            \
  F(not_equal_##SUFFIX, T, Bool, x != y ? 1 : 0)        \
  F(less_##SUFFIX, T, Bool, x < y ? 1 : 0)              \
  F(less_equal_##SUFFIX, T, Bool, x <= y ? 1 : 0)       \
  F(greater_##SUFFIX, T, Bool, x > y ? 1 : 0)           \
  F(greater_equal_##SUFFIX, T, Bool, x >= y ? 1 : 0)

#define CAIRN_CUDA_BINARY(F)                                                \
  F(add_f, float, float, x + y)                                             \
  F(add_i, std::int32_t, std::int32_t, wrap_add(x, y))                      \
  F(add_l, std::int64_t, std::int64_t, wrap_add(x, y))                      \
  F(sub_f, float, float, x - y)                                             \
  F(sub_i, std::int32_t, std::int32_t, wrap_sub(x, y))                      \
  F(sub_l, std::int64_t, std::int64_t, wrap_sub(x, y))                      \
  F(mul_f, float, float, x * y)                                             \
  F(mul_i, std::int32_t, std::int32_t, wrap_mul(x, y))                      \
  F(mul_l, std::int64_t, std::int64_t, wrap_mul(x, y))                      \
  F(div_f, float, float, x / y)                                             \
  F(div_i, std::int32_t, std::int32_t, integer_div(x, y))                   \
  F(div_l, std::int64_t, std::int64_t, integer_div(x, y))                   \
  F(floor_mod_f, float, float, float_mod(x, y))                             \
  F(floor_mod_i, std::int32_t, std::int32_t, integer_mod(x, y))             \
  F(floor_mod_l, std::int64_t, std::int64_t, integer_mod(x, y))             \
  F(maximum_f, float, float, x != x ? x : (y != y ? y : (x > y ? x : y)))   \
  F(maximum_i, std::int32_t, std::int32_t, x > y ? x : y)                   \
  F(maximum_l, std::int64_t, std::int64_t, x > y ? x : y)                   \
  F(minimum_f, float, float, x != x ? x : (y != y ? y : (x < y ? x : y)))   \
  F(minimum_i, std::int32_t, std::int32_t, x < y ? x : y)                   \
  F(minimum_l, std::int64_t, std::int64_t, x < y ? x : y)                   \
  F(pow_f, float, float, powf(x, y))                                        \
  F(sigmoid_cross_entropy_with_logits_f, float, float, cross_entropy(x, y)) \
  F(logical_and_b, Bool, Bool, static_cast<Bool>(x & y))                    \
  F(logical_or_b, Bool, Bool, static_cast<Bool>(x | y))                     \
  CAIRN_CUDA_COMPARISONS(F, f, float)                                       \
  CAIRN_CUDA_COMPARISONS(F, i, std::int32_t)                                \
  CAIRN_CUDA_COMPARISONS(F, l, std::int64_t)                                \
  CAIRN_CUDA_COMPARISONS(F, b, Bool)
// clang-format on

enum class Code : std::uint8_t {
#define CAIRN_CUDA_CODE(NAME, IN, OUT, EXPRESSION) NAME,
  CAIRN_CUDA_UNARY(CAIRN_CUDA_CODE) CAIRN_CUDA_BINARY(CAIRN_CUDA_CODE)
#undef CAIRN_CUDA_CODE
      where,  // c ? x : y with c in the first operand; any dtype
  cast,       // see Step::from and Step::to
  none,
};

using Bool = std::uint8_t;

// Signed overflow is undefined in C++, so that integers are computed unsigned.
template <typename T>
CAIRN_DEVICE T wrap_add(T x, T y) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(x) + static_cast<U>(y));
}
template <typename T>
CAIRN_DEVICE T wrap_sub(T x, T y) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(x) - static_cast<U>(y));
}
template <typename T>
CAIRN_DEVICE T wrap_mul(T x, T y) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(x) * static_cast<U>(y));
}
// The caller reports a divisor of 0. The lowest integer over -1 wraps around.
template <typename T>
CAIRN_DEVICE T integer_div(T x, T y) {
  if (y == 0) return 0;
  return y == -1 ? wrap_sub<T>(0, x) : static_cast<T>(x / y);
}
template <typename T>
CAIRN_DEVICE T integer_mod(T x, T y) {
  if (y == 0 || y == -1) return 0;
  const T r = static_cast<T>(x % y);
  return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(r + y) : r;
}
CAIRN_DEVICE float float_mod(float x, float y) {
  const float r = fmodf(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
// log(1 + exp(x)), arranged so that exp() cannot overflow.
CAIRN_DEVICE float softplus(float x) {
  const float y = (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)));
  return x != x ? x : y;
}
CAIRN_DEVICE float cross_entropy(float label, float logit) {
  const float y = (logit > 0.0f ? logit : 0.0f) - logit * label + log1pf(expf(-fabsf(logit)));
  return logit != logit ? logit : y;
}

// A register's value. Word is std::uint32_t, or std::uint64_t where a dtype has 8 bytes.
template <typename T, typename Word>
CAIRN_DEVICE T value_of(Word word) {
  if constexpr (sizeof(T) > sizeof(Word)) {
    return T{};  // no such operation is in a program of this width
  } else {
    T value;
    memcpy(&value, &word, sizeof value);
    return value;
  }
}
template <typename Word, typename T>
CAIRN_DEVICE Word word_of(T value) {
  Word word = 0;
  if constexpr (sizeof(T) <= sizeof(Word)) memcpy(&word, &value, sizeof value);
  return word;
}

// Each operation over registers, by its name: operation::add_f(a, b).
namespace operation {

#define CAIRN_CUDA_OPERATION(NAME, IN, OUT, EXPRESSION)      \
  template <typename Word>                                   \
  CAIRN_DEVICE Word NAME(Word a) {                           \
    const IN x = value_of<IN>(a);                            \
    return word_of<Word, OUT>(static_cast<OUT>(EXPRESSION)); \
  }
CAIRN_CUDA_UNARY(CAIRN_CUDA_OPERATION)
#undef CAIRN_CUDA_OPERATION
#define CAIRN_CUDA_OPERATION(NAME, IN, OUT, EXPRESSION)      \
  template <typename Word>                                   \
  CAIRN_DEVICE Word NAME(Word a, Word b) {                   \
    const IN x = value_of<IN>(a), y = value_of<IN>(b);       \
    return word_of<Word, OUT>(static_cast<OUT>(EXPRESSION)); \
  }
CAIRN_CUDA_BINARY(CAIRN_CUDA_OPERATION)
#undef CAIRN_CUDA_OPERATION

template <typename Word>
CAIRN_DEVICE Word where(Word condition, Word x, Word y) {
  return value_of<Bool>(condition) != 0 ? x : y;
}

}  // namespace operation

// out[l] = the operation over lane l of the operands. Not `where` and `cast`.
template <typename Word>
CAIRN_DEVICE void compute(Code code, const Word* a, const Word* b, Word* out) {
  switch (code) {
#define CAIRN_CUDA_CASE(NAME, IN, OUT, EXPRESSION)                         \
  case Code::NAME:                                                         \
    CAIRN_UNROLL                                                           \
    for (int l = 0; l < kLanes; ++l) out[l] = operation::NAME<Word>(a[l]); \
    return;
    CAIRN_CUDA_UNARY(CAIRN_CUDA_CASE)
#undef CAIRN_CUDA_CASE
#define CAIRN_CUDA_CASE(NAME, IN, OUT, EXPRESSION)                               \
  case Code::NAME:                                                               \
    CAIRN_UNROLL                                                                 \
    for (int l = 0; l < kLanes; ++l) out[l] = operation::NAME<Word>(a[l], b[l]); \
    return;
    CAIRN_CUDA_BINARY(CAIRN_CUDA_CASE)
#undef CAIRN_CUDA_CASE
    default: return;
  }
}

}  // namespace cairn::cuda
