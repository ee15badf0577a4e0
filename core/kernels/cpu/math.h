// Elementary functions on float that the compiler can vectorise: no branches, no calls, no tables.
// The relative error is about 1e-7 (a few units in the last place); a NaN gives a NaN; infinities
// and overflow are as in <cmath>.
//
// Special cases are computed like all others and then replaced by a conditional expression, which
// becomes a blend of vectors. "x != x" is the test for NaN that survives this.
//   Source  polynomials with the coefficients of Moshier's Cephes library; argument reduction after
//           Cody and Waite, "Software manual for the elementary functions", 1980.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/clones.h"

namespace cairn::math {

CAIRN_INLINE float from_bits(std::int32_t bits) { return std::bit_cast<float>(bits); }
CAIRN_INLINE std::int32_t to_bits(float x) { return std::bit_cast<std::int32_t>(x); }
CAIRN_INLINE float infinity() { return std::numeric_limits<float>::infinity(); }

// exp(x) = 2^n exp(r) with n = round(x / ln 2), so that |r| <= ln 2 / 2. ln 2 is taken off in two
// parts, the first of which has so few bits that n times it is exact (Cody and Waite); a polynomial
// gives exp(r).
CAIRN_INLINE float exp(float x) {
  // Beyond, the result is 0 or infinity in any case; NaN, which no integer is, becomes -104 here.
  float clamped = x > -104.0f ? x : -104.0f;
  clamped = clamped > 89.0f ? 89.0f : clamped;
  // 1.5 * 2^23: adding and subtracting it rounds to an integer
  constexpr float kRound = 12582912.0f;
  float n = (clamped * 1.44269504f + kRound) - kRound;
  float r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  float y = (p * r) * r + r + 1.0f;
  // 2^n in two factors: n may be 128, or so low that the result is denormal.
  std::int32_t power = static_cast<std::int32_t>(n);
  std::int32_t half = power >> 1;
  y = y * from_bits((half + 127) << 23) * from_bits((power - half + 127) << 23);
  return x != x ? x : y;
}

// x = 2^e m with m in [sqrt(1/2), sqrt(2)); a polynomial gives log(1 + r) for r = m - 1, and e
// times ln 2 is added in the same two parts as above. Denormal numbers are scaled by 2^23 first,
// since their exponent bits are 0.
CAIRN_INLINE float log(float x) {
  bool denormal = x < 1.17549435e-38f;
  float scaled = denormal ? x * 8388608.0f : x;
  std::int32_t bits = to_bits(scaled);
  std::int32_t exponent = ((bits >> 23) & 0xff) - 126 - (denormal ? 23 : 0);
  float m = from_bits((bits & 0x007fffff) | 0x3f000000);  // [0.5, 1)
  bool low = m < 0.707106781f;
  float e = static_cast<float>(exponent - (low ? 1 : 0));
  float r = (low ? m + m : m) - 1.0f;
  float z = r * r;
  float p = 7.0376836292e-2f;
  p = p * r - 1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r - 1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r - 1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r - 2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  float y = p * r * z - e * 2.12194440e-4f - 0.5f * z;
  y = r + y + e * 0.693359375f;
  y = x == infinity() ? x : y;
  y = x == 0.0f ? -infinity() : y;
  return x < 0.0f || x != x ? std::numeric_limits<float>::quiet_NaN() : y;
}

// log(1 + x) with the rounding error of 1 + x put back (Kahan): log alone would lose all digits of
// a small x.
CAIRN_INLINE float log1p(float x) {
  float u = 1.0f + x;
  float y = log(u) - ((u - 1.0f) - x) / u;
  y = u == 1.0f ? x : y;
  return u == infinity() || u == 0.0f ? log(u) : y;
}

// For large -x exp() is infinity and the quotient 0, which is right.
CAIRN_INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

// Near 0 the formula with exp() cancels, so a polynomial in x^2 takes over below 0.625. Both are
// computed, and one is chosen.
CAIRN_INLINE float tanh(float x) {
  float a = std::fabs(x);
  float large = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float small = p * z * x + x;
  return a < 0.625f || x != x ? small : std::copysign(large, x);
}

// log(1 + exp(x)), arranged so that exp() sees a negative number only and cannot overflow.
CAIRN_INLINE float softplus(float x) {
  float y = (x > 0.0f ? x : 0.0f) + log1p(exp(-std::fabs(x)));
  return x != x ? x : y;
}

// -label log(sigmoid(logit)) - (1 - label) log(1 - sigmoid(logit)), arranged in the same way; no
// sigmoid that has rounded to 0 or 1 is under the logarithm.
CAIRN_INLINE float sigmoid_cross_entropy(float label, float logit) {
  float y = (logit > 0.0f ? logit : 0.0f) - logit * label + log1p(exp(-std::fabs(logit)));
  return logit != logit ? logit : y;
}

}  // namespace cairn::math
