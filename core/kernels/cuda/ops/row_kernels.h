// Variables whose rows lie in the memory of a CUDA device: lookups and updates.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/kernels/cuda/runtime/queue.h"
#include "core/kernels/device.h"

namespace cairn::cuda {

// The queue outlives what is made.
std::unique_ptr<RowKernels> make_row_kernels(Queue& queue);

// Its lookups (row_gathers.cu).
RowKernels::Gathers prepare_gathers(Queue& queue, std::span<const RowKernels::GatherOf> all);

// The fastest updates by ids that there are, for float rows under SGD and lazy Adam (embedding/):
// a set of variables in one go. Ids that are out of range are left out.
// Whether there is one of such a variable in this build.
bool fuses(const RowKernels::UpdateOf& one);
// Whether one more may join the set, which is not empty.
bool fuse_together(std::span<const RowKernels::UpdateOf> set, const RowKernels::UpdateOf& one);
RowKernels::Updates prepare_fused_updates(Queue& queue, std::span<const RowKernels::UpdateOf> set);

// "id 9 at position 1 is outside [0, 9)", behind the operation and its types.
std::string id_text(std::string_view what, const TensorType& table, const TensorType& ids,
                    std::int64_t position, std::int64_t id);
// All of a block's parameters, from the first row's to the last one's.
Range range_of(const RowBlock& block);
// Passes the ranges to the driver, if it watches.
void announce(Queue& queue, const std::vector<Range>& reads, const std::vector<Range>& writes);

}  // namespace cairn::cuda
