// Elementwise operations as functions over a block of elements; trees of them are
// computed over blocks that stay in cache (core/kernels/cpu/fused.h).
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

#include "core/graph/graph.h"

namespace cairn {

// out[i] = f(a[i], b[i], c[i]) for i < n; an operation of fewer inputs ignores the rest. Blocks do
// not overlap.
using BlockOp = void (*)(const std::byte* a, const std::byte* b, const std::byte* c, std::byte* out,
                         std::size_t n);

// InvalidArgument: the operation has no kernel for these dtypes. `inputs` are the inputs' dtypes.
BlockOp find_block_op(std::string_view op, std::span<const DType> inputs, DType output);

}  // namespace cairn
