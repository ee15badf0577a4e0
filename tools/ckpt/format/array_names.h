// The names that formats have for dtypes.
//   Thread  any.
#pragma once
#include <optional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace cairn::tools::ckpt {

// Empty: the format does not have that dtype.
std::string_view safetensors_dtype(DType dtype);
std::string_view npy_dtype(DType dtype);
// nullopt: Cairn does not have it.
std::optional<DType> from_safetensors_dtype(std::string_view name);
std::optional<DType> from_npy_dtype(std::string_view name);

}  // namespace cairn::tools::ckpt
