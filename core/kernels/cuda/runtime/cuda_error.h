// CUDA's error codes as exceptions, on the line that got them.
#pragma once
#include <cuda_runtime_api.h>

#include <string_view>

#include "core/base/error.h"

namespace cairn::cuda {

//   Errors  ResourceExhausted: no memory. Internal: everything else.
inline void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that no later call reports it again
  const std::string text =
      str(what, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")");
  if (status == cudaErrorMemoryAllocation) throw ResourceExhaustedError(text);
  throw InternalError(text);
}

}  // namespace cairn::cuda
