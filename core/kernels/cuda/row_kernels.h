// Variables whose rows lie in the memory of a CUDA device: lookups and updates.
#pragma once
#include <memory>

#include "core/kernels/cuda/queue.h"
#include "core/kernels/device.h"

namespace cairn::cuda {

// The queue outlives what is made.
std::unique_ptr<RowKernels> make_row_kernels(Queue& queue);

// The fastest update by ids that there is for float rows under SGD and lazy Adam
// (embedding/). Empty: not for such a rule or table, or not in this build. Ids that are out of
// range are left out.
RowKernels::Update prepare_fused_update(Queue& queue, const UpdateRule& rule,
                                        const TensorType& table, const TensorType& ids);

}  // namespace cairn::cuda
