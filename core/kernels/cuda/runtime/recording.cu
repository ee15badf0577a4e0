#include "core/kernels/cuda/runtime/recording.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/kernels/cuda/runtime/cuda_error.h"
#include "core/kernels/cuda/runtime/group.h"

namespace cairn::cuda {
namespace {

class CudaRecording final : public Recording {
 public:
  explicit CudaRecording(cudaGraph_t graph) {
    const cudaError_t status = cudaGraphInstantiate(&ready_, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "making a recorded step ready");
  }
  ~CudaRecording() override { cudaGraphExecDestroy(ready_); }
  void replay(Stream stream) override { check(cudaGraphLaunch(ready_, stream), "a recorded step"); }

 private:
  cudaGraphExec_t ready_ = nullptr;
};

__global__ void __launch_bounds__(kBlock)
    fill_words(std::uint32_t* to, std::uint32_t value, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * kBlock;
  for (std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x; i < count; i += step)
    to[i] = value;
}

// The word that the memory is filled with; false: it is not one row of whole words.
bool as_words(const cudaMemsetParams& p, std::uint32_t& value, std::size_t& count) {
  const std::size_t bytes = p.width * p.elementSize;
  if (p.height != 1 || bytes % 4 != 0 || reinterpret_cast<std::uintptr_t>(p.dst) % 4 != 0)
    return false;
  count = bytes / 4;
  value = p.value;
  if (p.elementSize == 1) value = (value & 0xffu) * 0x01010101u;
  if (p.elementSize == 2) value = (value & 0xffffu) * 0x00010001u;
  return true;
}

std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  check(cudaGraphGetNodes(graph, nullptr, &count), "a recorded step's nodes");
  std::vector<cudaGraphNode_t> all(count);
  if (count > 0) check(cudaGraphGetNodes(graph, all.data(), &count), "a recorded step's nodes");
  return all;
}

// All neighbours of a node that `ask` lists; false: an edge to one of them is not a plain one, as
// between kernels that are meant to overlap.
template <typename Ask>
bool neighbours(const Ask& ask, cudaGraphNode_t node, std::vector<cudaGraphNode_t>& found) {
  std::size_t count = 0;
  cudaError_t status = ask(node, nullptr, nullptr, &count);
  found.resize(count);
  if (status == cudaSuccess && count > 0) status = ask(node, found.data(), nullptr, &count);
  if (status != cudaSuccess) return cudaGetLastError(), false;
  return true;
}

// Each launch of a graph costs the host about 1.6 us for every memset in it, and next to nothing
// for a kernel (an H200, CUDA 13). The library's sorts clear what they count in, so that a step
// with tables has a dozen.
void replace_memset(cudaGraph_t graph, cudaGraphNode_t node) {
  constexpr std::size_t kBlocksMax = 132 * 8;
  cudaMemsetParams params{};
  check(cudaGraphMemsetNodeGetParams(node, &params), "a recorded step's memset");
  std::uint32_t value = 0;
  std::size_t count = 0;
  std::vector<cudaGraphNode_t> before, after;
  if (!as_words(params, value, count) || !neighbours(cudaGraphNodeGetDependencies, node, before) ||
      !neighbours(cudaGraphNodeGetDependentNodes, node, after))
    return;
  auto* to = static_cast<std::uint32_t*>(params.dst);
  void* arguments[] = {&to, &value, &count};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(fill_words);
  kernel.gridDim = dim3(
      static_cast<unsigned>(std::clamp<std::size_t>((count + kBlock - 1) / kBlock, 1, kBlocksMax)));
  kernel.blockDim = dim3(kBlock);
  kernel.kernelParams = arguments;
  cudaGraphNode_t filled = nullptr;
  check(cudaGraphAddKernelNode(&filled, graph, before.data(), before.size(), &kernel),
        "a recorded step's fill");
  const std::vector<cudaGraphNode_t> from(after.size(), filled);
  if (!after.empty())
    check(cudaGraphAddDependencies(graph, from.data(), after.data(), nullptr, after.size()),
          "a recorded step's fill");
  check(cudaGraphDestroyNode(node), "a recorded step's memset");
}

void replace_memsets(cudaGraph_t graph) {
  for (cudaGraphNode_t node : nodes_of(graph)) {
    cudaGraphNodeType type{};
    check(cudaGraphNodeGetType(node, &type), "a recorded step's node");
    if (type == cudaGraphNodeTypeMemset) replace_memset(graph, node);
  }
}

}  // namespace

std::unique_ptr<Recording> make_recording(cudaGraph_t graph) {
  try {
    replace_memsets(graph);
  } catch (...) {
    cudaGraphDestroy(graph);
    throw;
  }
  return std::make_unique<CudaRecording>(graph);
}

}  // namespace cairn::cuda
