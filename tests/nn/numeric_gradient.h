// Gradients of a layer against differences of the layer itself.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/graph/function.h"
#include "core/graph/ops.h"
#include "tests/nn/values.h"

namespace cairn::nn {

// Distinct weights, so that no two elements of the result are interchangeable.
inline Array weighted_sum(const Array& y) {
  Tensor weights(DType::kFloat32, Shape{y.shape().elements()});
  std::size_t i = 0;
  for (float& weight : weights.mutable_values<float>())
    weight = 0.5f + 0.37f * static_cast<float>(i++ % 7);
  return sum(reshape(y, weights.shape()) * Array(weights));
}

// `output` reads the variables anew at each call, and gives a result of known shape.
inline void expect_gradients_as_differences(const std::function<Array()>& output,
                                            const std::vector<Variable>& variables,
                                            float tolerance = 4e-3f) {
  constexpr float kStep = 1e-2f;
  const auto loss = [&] { return weighted_sum(output()).eval().item<float>(); };
  const std::vector<VariableGradient> gradients =
      variable_gradients(weighted_sum(output()), variables);
  ASSERT_EQ(gradients.size(), variables.size());
  for (const VariableGradient& gradient : gradients) {
    const Variable& variable = gradient.variable;
    const Tensor before = variable.read().eval();
    const std::vector<float> got = numbers(gradient.dense);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto loss_after = [&](float change) {
        Tensor moved = before.clone();
        moved.mutable_values<float>()[i] += change;
        variable.assign(Array(moved));
        return loss();
      };
      const float want = (loss_after(kStep) - loss_after(-kStep)) / (2 * kStep);
      EXPECT_NEAR(got[i], want, tolerance * std::max(1.0f, std::abs(want)))
          << variable.name() << ", element " << i;
    }
    variable.assign(Array(before));
  }
}

// Different numbers in [-1, 1).
inline Tensor varied(const Shape& shape, std::uint32_t seed = 1) {
  Tensor made(DType::kFloat32, shape);
  std::uint32_t state = seed;
  for (float& value : made.mutable_values<float>()) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1;
  }
  return made;
}

}  // namespace cairn::nn
