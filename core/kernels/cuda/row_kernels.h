// Variables whose rows lie in the memory of a CUDA device: lookups and updates.
#pragma once
#include <memory>
#include <span>

#include "core/kernels/cuda/queue.h"
#include "core/kernels/device.h"

namespace cairn::cuda {

// The queue outlives what is made.
std::unique_ptr<RowKernels> make_row_kernels(Queue& queue);

// The fastest updates by ids that there are, for float rows under SGD and lazy Adam (embedding/):
// a set of variables in one go. Ids that are out of range are left out.
// Whether there is one of such a variable in this build.
bool fuses(const RowKernels::UpdateOf& one);
// Whether one more may join the set, which is not empty.
bool fuse_together(std::span<const RowKernels::UpdateOf> set, const RowKernels::UpdateOf& one);
RowKernels::Updates prepare_fused_updates(Queue& queue, std::span<const RowKernels::UpdateOf> set);

}  // namespace cairn::cuda
