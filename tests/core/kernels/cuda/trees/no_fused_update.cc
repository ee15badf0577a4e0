// Compiled for the host there are no kernels of core/kernels/cuda/embedding: they are of warps.
#include "core/base/error.h"
#include "core/kernels/cuda/ops/row_kernels.h"

namespace cairn::cuda {

bool fuses(const RowKernels::UpdateOf&) { return false; }
bool fuse_together(std::span<const RowKernels::UpdateOf>, const RowKernels::UpdateOf&) {
  return false;
}
RowKernels::Updates prepare_fused_updates(Queue&, std::span<const RowKernels::UpdateOf>) {
  CAIRN_CHECK(false, "nothing is fused");
}

}  // namespace cairn::cuda
