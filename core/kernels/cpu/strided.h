// Copies through strides: the common ground of broadcasting and transposition. Made once for
// concrete shapes; running one allocates nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace cairn {

// Walks an output of `dims` in row-major order; the source of element (i, j, ...) is i * strides[0]
// + j * strides[1] + ... Neighbouring axes that are one run in the source are joined.
struct StridedCopy {
  std::vector<std::int64_t> dims, strides;  // in elements; at least one axis

  // A value of shape `from` stretched to `to`, which it must broadcast to; and axis i of the result
  // being axis permutation[i] of the source.
  static StridedCopy broadcast(const Shape& from, const Shape& to);
  static StridedCopy transpose(const Shape& from, const std::vector<std::int64_t>& permutation);

  // Elements [begin, begin + count) of the output, of `width` bytes each (1, 2, 4 or 8).
  void run(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t count,
           std::size_t width) const;
};

}  // namespace cairn
