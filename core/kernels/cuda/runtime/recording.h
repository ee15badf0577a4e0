// Recorded work as a CUDA graph.
#pragma once
#include <cuda_runtime_api.h>

#include <memory>

#include "core/kernels/cuda/runtime/driver.h"

namespace cairn::cuda {

// Takes the graph over, also where it fails.
std::unique_ptr<Recording> make_recording(cudaGraph_t graph);

}  // namespace cairn::cuda
