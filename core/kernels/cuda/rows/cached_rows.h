// A variable of a workspace behind a RowCache of its own.
#pragma once
#include <memory>

#include "core/kernels/cuda/runtime/queue.h"
#include "core/kernels/device.h"

namespace cairn::cuda {

// See RowKernels::cache_rows(). The queue outlives it.
std::unique_ptr<CachedRows> make_cached_rows(Queue& queue, const RowBlock& home,
                                             const RowKernels::CacheOptions& options);

}  // namespace cairn::cuda
