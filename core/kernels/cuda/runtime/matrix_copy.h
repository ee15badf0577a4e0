// Copies of matrices in the form in which a product takes them.
#pragma once
#include <cstdint>

#include "core/tensor/tensor.h"

namespace cairn::cuda {

class Queue;

// Copies a row-major matrix to another size, and to another dtype, float32 or bfloat16. Elements
// that the source does not have are zero; those for which there is no room are left out.
struct MatrixCopy {
  DType from = DType::kFloat32, to = DType::kFloat32;
  std::int64_t rows = 0, columns = 0, to_rows = 0, to_columns = 0;

  bool changes_size() const { return rows != to_rows || columns != to_columns; }
  std::size_t from_bytes() const {
    return static_cast<std::size_t>(rows * columns) * dtype_bytes(from);
  }
  std::size_t to_bytes() const {
    return static_cast<std::size_t>(to_rows * to_columns) * dtype_bytes(to);
  }
  bool operator==(const MatrixCopy&) const = default;
};

void copy_matrix(Queue& queue, const MatrixCopy& copy, const std::byte* from, std::byte* to);

}  // namespace cairn::cuda
