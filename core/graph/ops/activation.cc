// Activations: chains of elementwise operations. Where a branch is not taken its argument is held
// at 0, so that no infinity made there turns the gradient into NaN.
#include <numbers>

#include "core/graph/ops.h"

namespace cairn {
namespace {

// e^x - 1 below 0; its values above 0 are never used.
Array expm1_below_zero(const Array& x) { return expm1(minimum(x, 0.0f)); }

}  // namespace

// The function is x above 0 and alpha (e^x - 1) below: Clevert, Unterthiner, Hochreiter, ICLR 2016.
Array elu(const Array& x, float alpha) {
  Array below = expm1_below_zero(x);
  return where(less(x, 0.0f), alpha == 1.0f ? below : below * alpha, x);
}

// A scaled elu whose constants keep mean 0 and variance 1: Klambauer et al., NIPS 2017.
Array selu(const Array& x) {
  constexpr float kScale = 1.0507009873554805f, kAlpha = 1.6732632423543772f;
  return where(less(x, 0.0f), expm1_below_zero(x) * (kScale * kAlpha), x * kScale);
}

Array leaky_relu(const Array& x, float alpha) { return where(greater(x, 0.0f), x, x * alpha); }

Array relu6(const Array& x) { return where(greater_equal(x, 6.0f), 6.0f, relu(x)); }

Array swish(const Array& x) { return x * sigmoid(x); }

// x Phi(x) with the normal distribution's Phi(x) = erfc(-x / sqrt(2)) / 2 (Hendrycks, Gimpel,
// 2016); by erfc because 1 + erf loses all digits far below 0.
Array gelu(const Array& x) { return x * 0.5f * erfc(x * (-1 / std::numbers::sqrt2_v<float>)); }

Array gelu_approximate(const Array& x) {
  constexpr float kCubic = 0.044715f, kScale = 0.79788456f;  // sqrt(2 / pi)
  return x * 0.5f * (1.0f + tanh((x + x * x * x * kCubic) * kScale));
}

}  // namespace cairn
