// Tensors and shapes as recorded vectors have them.
#pragma once
#include "core/tensor/tensor.h"
#include "tests/core/vectors.h"

namespace cairn::testing {

// As Python's nested lists.
inline Json nested(const Tensor& tensor, const Shape& shape, std::int64_t& at) {
  if (shape.rank() == 0) {
    const auto place = static_cast<std::size_t>(at++);
    switch (tensor.dtype()) {
      case DType::kString: return tensor.string_values()[place];
      case DType::kBool: return tensor.values<bool>()[place];
      case DType::kFloat32: return static_cast<double>(tensor.values<float>()[place]);
      case DType::kFloat64: return tensor.values<double>()[place];
      case DType::kInt32: return tensor.values<std::int32_t>()[place];
      default: return tensor.values<std::int64_t>()[place];
    }
  }
  Json all = Json::array();
  for (std::int64_t i = 0; i < shape[0]; ++i)
    all.push_back(nested(tensor, shape.without_front(), at));
  return all;
}
inline Json nested(const Tensor& tensor) {
  std::int64_t at = 0;
  return nested(tensor, tensor.shape(), at);
}

inline Json dims(const Shape& shape) {
  Json all = Json::array();
  for (const std::int64_t dim : shape.dims())
    all.push_back(dim == Shape::kUnknown ? Json() : Json(dim));
  return all;
}

}  // namespace cairn::testing
