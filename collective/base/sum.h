// The arithmetic of reductions: sums of arrays, element by element.
//
// A sum over members is taken in the order of their ranks, ((r0 + r1) + r2) + ..., unless the
// caller asks for another one (sum_order.h). Integers wrap around. A mean is the sum divided by the
// number of members, in one rounding.
//   Source  "What Every Computer Scientist Should Know About Floating-Point Arithmetic", Goldberg,
//           1991: float addition is not associative, so that the order must be part of the contract
//           for a run to repeat bit for bit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "collective/base/sum_order.h"
#include "core/graph/reduce_op.h"
#include "core/tensor/tensor.h"

namespace cairn {

// into[i] += from[i]. The dtypes are float32, int32 and int64; the arrays are aligned to an element
// and do not overlap.
//   Thread  any. Vectorised, by the compiler, for the processor that it runs on.
void add_to(DType dtype, std::byte* into, const std::byte* from, std::size_t elements);
// values[i] /= divisor, of float32.
void divide_by(float divisor, std::byte* values, std::size_t elements);

// Replaces each of `arrays` (by rank) by the sum, or the mean, of all of them.
//   Cost  each array is read once and written once; a block of 16 KB lies in the first cache
//         meanwhile.
void reduce_all(ReduceOp op, DType dtype, std::span<std::byte* const> arrays, std::size_t elements);

// Some of the elements that a call sums: [begin, begin + elements) of `all`, which the order of a
// ring cuts into slices.
struct SumRange {
  std::int64_t begin = 0;
  std::int64_t elements = 0;
  std::int64_t all = 0;
};
// The same for such a range, which arrays[rank] points to, in any order. However a call's elements
// are cut into ranges, the bits are the same.
//   Cost  as of reduce_all(); kPairs writes to every second array twice.
void reduce_range(SumOrder order, ReduceOp op, DType dtype, std::span<std::byte* const> arrays,
                  const SumRange& range);

}  // namespace cairn
