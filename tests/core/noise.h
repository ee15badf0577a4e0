// Tensors for tests.
#pragma once
#include <utility>

#include "core/base/random.h"
#include "core/tensor/tensor.h"

namespace cairn::testing {

// float32, uniform in [-1, 1), from the seed.
inline Tensor noise(Shape shape, std::uint64_t seed) {
  Tensor made(DType::kFloat32, std::move(shape));
  Random random(seed);
  for (float& x : made.mutable_values<float>())
    x = uniform_float(static_cast<std::uint32_t>(random.bits())) * 2 - 1;
  return made;
}

}  // namespace cairn::testing
