#include "collective/sum.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/clones.h"
#include "core/base/error.h"

namespace cairn {
namespace {

// Unsigned, because an overflow of signed integers is undefined; the bits are the same.
CAIRN_CLONES void add_floats(float* __restrict into, const float* __restrict from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] += from[i];
}
CAIRN_CLONES void add_words(std::uint32_t* __restrict into, const std::uint32_t* __restrict from,
                            std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] += from[i];
}
CAIRN_CLONES void add_long_words(std::uint64_t* __restrict into,
                                 const std::uint64_t* __restrict from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] += from[i];
}
CAIRN_CLONES void divide_floats(float* values, float divisor, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) values[i] /= divisor;
}

constexpr std::size_t kBlockBytes = std::size_t{16} << 10;

}  // namespace

void add_to(DType dtype, std::byte* into, const std::byte* from, std::size_t elements) {
  switch (dtype) {
    case DType::kFloat32:
      return add_floats(reinterpret_cast<float*>(into), reinterpret_cast<const float*>(from),
                        elements);
    case DType::kInt32:
      return add_words(reinterpret_cast<std::uint32_t*>(into),
                       reinterpret_cast<const std::uint32_t*>(from), elements);
    case DType::kInt64:
      return add_long_words(reinterpret_cast<std::uint64_t*>(into),
                            reinterpret_cast<const std::uint64_t*>(from), elements);
    default: CAIRN_CHECK(false, "no sum of ", dtype_name(dtype));
  }
}

void divide_by(float divisor, std::byte* values, std::size_t elements) {
  divide_floats(reinterpret_cast<float*>(values), divisor, elements);
}

// The sum is taken in the first array itself, block by block, so that every further array meets it
// in the first cache, and it is still there when it is copied into the others.
void reduce_all(ReduceOp op, DType dtype, std::span<std::byte* const> arrays,
                std::size_t elements) {
  const std::size_t width = dtype_bytes(dtype), block = kBlockBytes / width;
  for (std::size_t begin = 0; begin < elements; begin += block) {
    const std::size_t n = std::min(block, elements - begin), offset = begin * width;
    std::byte* sum = arrays[0] + offset;
    for (std::byte* array : arrays.subspan(1)) add_to(dtype, sum, array + offset, n);
    if (op == ReduceOp::kMean) divide_by(static_cast<float>(arrays.size()), sum, n);
    for (std::byte* array : arrays.subspan(1)) std::memcpy(array + offset, sum, n * width);
  }
}

}  // namespace cairn
