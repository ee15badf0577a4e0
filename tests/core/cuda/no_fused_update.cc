// Compiled for the host there are no kernels of core/kernels/cuda/embedding: they are of warps.
#include "core/kernels/cuda/row_kernels.h"

namespace cairn::cuda {

RowKernels::Update prepare_fused_update(Queue&, const UpdateRule&, const TensorType&,
                                        const TensorType&) {
  return {};
}

}  // namespace cairn::cuda
