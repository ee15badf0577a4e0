#include "collective/base/sum.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

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

namespace {

// The sum is taken in the first array itself, block by block, so that every further array meets it
// in the first cache, and it is still there when it is copied into the others.
// `add(offset, n)` adds the blocks of all arrays up in the first one.
template <typename Add>
void reduce_blocks(ReduceOp op, DType dtype, std::span<std::byte* const> arrays,
                   std::size_t elements, const Add& add) {
  const std::size_t width = dtype_bytes(dtype), block = kBlockBytes / width;
  for (std::size_t begin = 0; begin < elements; begin += block) {
    const std::size_t n = std::min(block, elements - begin), offset = begin * width;
    std::byte* sum = arrays[0] + offset;
    add(offset, n);
    if (op == ReduceOp::kMean) divide_by(static_cast<float>(arrays.size()), sum, n);
    for (std::byte* array : arrays.subspan(1)) std::memcpy(array + offset, sum, n * width);
  }
}

// A pair's sum lies where its first one lay; the arrays are all overwritten by the result anyway.
void reduce_pairs(ReduceOp op, DType dtype, std::span<std::byte* const> arrays,
                  std::size_t elements) {
  reduce_blocks(op, dtype, arrays, elements, [&](std::size_t offset, std::size_t n) {
    for (std::size_t apart = 1; apart < arrays.size(); apart *= 2)
      for (std::size_t i = 0; i + apart < arrays.size(); i += 2 * apart)
        add_to(dtype, arrays[i] + offset, arrays[i + apart] + offset, n);
  });
}

// A slice begins with the array after its own, so the sum is that of the arrays turned.
void reduce_ring(ReduceOp op, DType dtype, std::span<std::byte* const> arrays,
                 const SumRange& range) {
  const auto size = static_cast<std::int64_t>(arrays.size());
  const std::int64_t slice = std::max<std::int64_t>(1, (range.all + size - 1) / size);
  const std::int64_t end = range.begin + range.elements;
  std::vector<std::byte*> turned(arrays.size());
  for (std::int64_t at = range.begin, stop = at; at < end; at = stop) {
    const std::int64_t first = at / slice + 1;
    stop = std::min(end, first * slice);
    const std::size_t offset = static_cast<std::size_t>(at - range.begin) * dtype_bytes(dtype);
    for (std::int64_t i = 0; i < size; ++i)
      turned[static_cast<std::size_t>(i)] =
          arrays[static_cast<std::size_t>((first + i) % size)] + offset;
    reduce_all(op, dtype, turned, static_cast<std::size_t>(stop - at));
  }
}

}  // namespace

void reduce_all(ReduceOp op, DType dtype, std::span<std::byte* const> arrays,
                std::size_t elements) {
  reduce_blocks(op, dtype, arrays, elements, [&](std::size_t offset, std::size_t n) {
    for (std::byte* array : arrays.subspan(1)) add_to(dtype, arrays[0] + offset, array + offset, n);
  });
}

void reduce_range(SumOrder order, ReduceOp op, DType dtype, std::span<std::byte* const> arrays,
                  const SumRange& range) {
  const auto elements = static_cast<std::size_t>(range.elements);
  switch (order) {
    case SumOrder::kRanks: return reduce_all(op, dtype, arrays, elements);
    case SumOrder::kPairs: return reduce_pairs(op, dtype, arrays, elements);
    case SumOrder::kRing: return reduce_ring(op, dtype, arrays, range);
  }
}

}  // namespace cairn
