// The arithmetic of reductions: sums of arrays, element by element.
//
// A sum over members is taken in the order of their ranks, ((r0 + r1) + r2) + ..., wherever it is
// taken. Integers wrap around. A mean is the sum divided by the number of members, in one rounding.
//   Source  "What Every Computer Scientist Should Know About Floating-Point Arithmetic", Goldberg,
//           1991: float addition is not associative, so that the order must be part of the contract
//           for a run to repeat bit for bit.
#pragma once
#include <cstddef>
#include <span>

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

}  // namespace cairn
