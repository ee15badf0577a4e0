// Gradients against differences of the function itself, leading dimensions known and unknown.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "core/graph/array.h"
#include "core/tensor/tensor.h"

namespace cairn::testing {

// An operation on these inputs, of which the float ones are differentiated by. Its result has at
// most 64 elements. The name is that of the operation whose gradient it checks.
struct GradientCase {
  const char* name;
  std::function<Array(const std::vector<Array>&)> op;
  std::vector<Tensor> inputs;
};

// Failures are gtest's.
void check_gradients(const std::vector<GradientCase>& cases);

// Numbers away from the kinks of abs, relu, floor and the extremes: 0.1 apart, and from 0 and 1.
Tensor values(Shape shape, std::uint64_t seed, float low = -2, float high = 2);
Tensor positive(Shape shape, std::uint64_t seed);

// The cases for core/graph/ops_arrange.h, defined in gradient_arrange_test.cc.
std::vector<GradientCase> arrange_cases();

}  // namespace cairn::testing
