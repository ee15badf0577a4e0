// Tensors as the bytes behind the JSON of a request or an answer. A part of the codec of infer.h.
//   Thread  any.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"
#include "serving/api/column_builder.h"

namespace cairn::serving {

// The tensor in `bytes`, which lie in memory that `owner` keeps.  `name` is for messages.
//   Errors  InvalidArgument, before memory is taken: the bytes are not as many as the shape wants;
//           lengths of strings that do not add up; a bool other than 0 and 1; a number that is not
//           finite, unless the limits allow it; limits.
Tensor read_binary(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes,
                   const std::shared_ptr<const void>& owner, DecodeBudget& budget);

std::size_t binary_bytes(const Tensor& tensor);
void append_binary(std::string& out, const Tensor& tensor);

}  // namespace cairn::serving
