// Small tensors, and comparing them, for the tests of nn.
#pragma once
#include <gmock/gmock.h>

#include <cmath>
#include <initializer_list>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/variable.h"

namespace cairn::nn {

inline Tensor floats(Shape shape, std::initializer_list<float> values) {
  return Tensor::of<float>(std::move(shape), std::span<const float>(values.begin(), values.size()));
}
inline Tensor ids(Shape shape, std::initializer_list<std::int64_t> values) {
  return Tensor::of<std::int64_t>(std::move(shape),
                                  std::span<const std::int64_t>(values.begin(), values.size()));
}
inline std::vector<float> numbers(const Tensor& tensor) {
  auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}
inline std::vector<float> numbers(const Array& array) { return numbers(array.eval()); }

inline Variable make_variable(const std::string& name, Tensor value) {
  Shape shape = value.shape();
  return current_variable_creator().create_variable(
      {.name = name, .shape = shape, .initializer = Initializer::from(std::move(value))});
}

// Each within `tolerance`, relative above 1.
inline void expect_close(const Array& array, const std::vector<float>& want,
                         float tolerance = 1e-6f) {
  std::vector<float> got = numbers(array);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0f, std::abs(want[i]))) << "element " << i;
}

}  // namespace cairn::nn
